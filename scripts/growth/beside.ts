import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Figure } from './measured.ts'

const root = new URL('../../', import.meta.url).pathname
/** Between two acts of a caller: others of the machine get their turn, and what is beside gets most of the disk. */
const PAUSE_MS = 5

/** Measures pieces of work one after another, and what a caller waits who goes on all the while. */
export function besides(figures: Figure[], caller: string, act: () => Promise<unknown>) {
  return {
    /** `work` gives the most memory that its process had, in MiB, where it has one of its own. */
    async measured(name: string, work: () => Promise<number | undefined>): Promise<void> {
      const waits: number[] = []
      let isOver = false
      const loop = monitorEventLoopDelay({ resolution: 5 })
      loop.enable()
      const began = performance.now()
      const worked = work().finally(() => {
        isOver = true
      })
      worked.catch(() => undefined)
      do {
        const asked = performance.now()
        await act()
        waits.push(performance.now() - asked)
        await pause(PAUSE_MS)
      } while (!isOver)
      const mib = await worked
      figures.push([name, (performance.now() - began) / 1000, 's'])
      process.stderr.write(`${name}: ${Math.round((performance.now() - began) / 1000)} s\n`)
      loop.disable()
      waits.sort((a, b) => a - b)
      figures.push([`${name}: ${caller} beside, median`, waits[waits.length >> 1]!])
      figures.push([`${name}: ${caller} beside, longest`, waits.at(-1)!])
      figures.push(
        mib === undefined ? [`${name}: event loop held up`, loop.max / 1e6] : [`${name}: memory`, mib, 'MiB'],
      )
    },
  }
}

/** Runs a command of the product to its end; the most memory that it had, in MiB. */
export async function command(service: 'router' | 'runtime', args: readonly string[], env = {}): Promise<number> {
  const child = spawn(process.execPath, [`${service}/cli/main.ts`, ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(child, 'exit')
  let peakKib = 0
  while (child.exitCode === null && child.signalCode === null) {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
    peakKib = Math.max(peakKib, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0))
    await Promise.race([exited, pause(20)])
  }
  if (child.exitCode !== 0) throw new Error(`${service} ${args.join(' ')} ended with ${child.exitCode}`)
  return peakKib / 1024
}
