import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench, Figure } from './harness.ts'

const root = new URL('../../', import.meta.url).pathname

const FLOOR = `require('node:http').createServer((_, answer) => answer.end('{}')).listen(Number(process.env.FLOOR_PORT), '127.0.0.1')`

/** From spawn to the first 200 on /healthz, from the sources of this checkout, beside a bare HTTP server. */
export const startBench: Bench = {
  title: 'Start',
  about:
    'Milliseconds from spawning the process to its first 200 on /healthz, new database each time, sources run as they are. ' +
    'The floor is a bare node:http server.',
  unit: 'ms',
  rounds: 9,
  expectations: [
    { says: 'runtime starts in time', value: ({ variants }) => variants[1]!.median, atMost: 700 },
    { says: 'router starts in time', value: ({ variants }) => variants[2]!.median, atMost: 700 },
    { says: 'runtime is small when idle', value: ({ figures }) => figures[0]!.value, atMost: 110 },
    { says: 'router is small when idle', value: ({ figures }) => figures[1]!.value, atMost: 110 },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-start-'))
    let count = 0
    const services = {
      runtime: (port: number) =>
        launch([`${root}runtime/cli/main.ts`, 'serve'], {
          PLATFORM_BIND: `127.0.0.1:${port}`,
          PLATFORM_DATA_DIR: join(folder, String(count++)),
        }),
      router: (port: number) =>
        launch([`${root}router/cli/main.ts`, 'serve'], {
          ROUTER_BIND: `127.0.0.1:${port}`,
          ROUTER_DB: join(folder, `${count++}.db`),
        }),
      floor: (port: number) => launch(['-e', FLOOR], { FLOOR_PORT: String(port) }),
    }
    const timed = (name: keyof typeof services) => async () => {
      const started = performance.now()
      const running = await firstAnswer(services[name])
      const took = performance.now() - started
      await stop(running.child)
      return took
    }
    const idle = async (name: 'runtime' | 'router'): Promise<Figure> => {
      const { child } = await firstAnswer(services[name])
      await wait(2000)
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
      await stop(child)
      return { name: `${name}, resident after 2 s idle`, value: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024, unit: 'MiB' }
    }
    return {
      variants: [
        { name: 'floor', round: timed('floor') },
        { name: 'runtime', round: timed('runtime') },
        { name: 'router', round: timed('router') },
      ],
      figures: async () => [await idle('runtime'), await idle('router')],
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}

function launch(args: string[], vars: Record<string, string>): ChildProcess {
  return spawn(process.execPath, args, { env: { PATH: process.env.PATH, ...vars }, stdio: 'ignore' })
}

async function firstAnswer(start: (port: number) => ChildProcess): Promise<{ child: ChildProcess }> {
  const port = await freePort()
  const child = start(port)
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.status === 200) return { child }
    if (child.exitCode !== null) throw new Error(`the process ended with ${child.exitCode}`)
    await wait(3)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
