import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import type { Bench, Figure } from './harness.ts'

const root = new URL('../../', import.meta.url).pathname

const FLOOR = `require('node:http').createServer((_, answer) => answer.end('{}')).listen(Number(process.env.FLOOR_PORT), '127.0.0.1')`

/** From spawn to the first 200 on /healthz, in the published form and from the sources, beside a bare HTTP server. */
export const startBench: Bench = {
  title: 'Start',
  about:
    'Milliseconds from spawning the process to its first 200 on /healthz, new database each time. The floor is a bare ' +
    'node:http server. Each service finds the compiled code that its first start, which is not counted, has kept; a "first start" finds none. ' +
    'From sources Node strips the types itself.',
  unit: 'ms',
  rounds: 9,
  expectations: [
    { says: 'runtime starts in time', value: ({ variants }) => variants[1]!.median, atMost: 350 },
    { says: 'router starts in time', value: ({ variants }) => variants[2]!.median, atMost: 350 },
    {
      says: 'runtime starts in time from sources',
      value: ({ variants }) => variants[3]!.median,
      atMost: 900,
    },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-start-'))
    let count = 0
    execFileSync(process.execPath, [`${root}scripts/build.ts`])
    const cache = join(folder, 'compiled')
    const service = (cli: string, compiled: () => string) => (port: number) =>
      launch([root + cli, 'serve'], {
        NODE_COMPILE_CACHE: compiled(),
        PLATFORM_BIND: `127.0.0.1:${port}`,
        PLATFORM_DATA_DIR: join(folder, String(count++)),
        ROUTER_BIND: `127.0.0.1:${port}`,
        ROUTER_DB: join(folder, `${count++}.db`),
      })
    const services: Record<string, (port: number) => ChildProcess> = {
      floor: port => launch(['-e', FLOOR], { FLOOR_PORT: String(port) }),
      runtime: service('dist/runtime/cli/main.js', () => cache),
      router: service('dist/router/cli/main.js', () => cache),
      'runtime from sources': service('runtime/cli/main.ts', () => cache),
      'router from sources': service('router/cli/main.ts', () => cache),
      'runtime, first start': service('dist/runtime/cli/main.js', () => join(folder, `compiled-${count++}`)),
      'router, first start': service('dist/router/cli/main.js', () => join(folder, `compiled-${count++}`)),
    }
    const begun = new Set<string>()
    const timed = (name: string) => async () => {
      const started = performance.now()
      const running = await firstAnswer(services[name]!)
      const took = performance.now() - started
      // What was compiled is kept by a process that ends in order.
      await stop(running.child, begun.has(name) ? 'SIGKILL' : 'SIGTERM')
      begun.add(name)
      return took
    }
    const idle = async (name: string): Promise<Figure> => {
      const { child } = await firstAnswer(services[name]!)
      await wait(2000)
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
      await stop(child)
      return {
        name: `${name}, resident after 2 s idle`,
        value: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1.024e-3,
        unit: 'MB',
      }
    }
    return {
      variants: Object.keys(services).map(name => ({ name, round: timed(name) })),
      figures: () => Promise.all(Object.keys(services).slice(1, 5).map(idle)),
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

async function stop(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}
