import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../scripts/bench/free-port.ts'
import { noonZone } from '../noon-zone.ts'
import { programEnv } from '../program-env.ts'

const KEY = `wb_live_${'c'.repeat(43)}`
const root = new URL('../../', import.meta.url).pathname

export interface Instance {
  origin: string
  readonly running: boolean
  start(): Promise<void>
  /** SIGKILL leaves everything as it is; SIGTERM drains. */
  stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
}

/** Several control planes, each a process of its own, on one libSQL server. */
export async function cluster(
  databaseUrl: string,
  size: number,
  vars: Record<string, string> | ((number: number, origin: string) => Record<string, string>) = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-cluster-'))
  const masterKey = Buffer.alloc(32, 5).toString('base64')
  const instances: Instance[] = []
  const lines: string[] = []
  for (let number = 0; number < size; number++) {
    const port = await freePort()
    const origin = `http://127.0.0.1:${port}`
    let child: ChildProcess | undefined
    instances.push({
      origin,
      get running() {
        return child !== undefined
      },
      async start() {
        const env = {
          ...programEnv,
          PLATFORM_BIND: `127.0.0.1:${port}`,
          PLATFORM_DATABASE_URL: databaseUrl,
          PLATFORM_DATA_DIR: join(folder, String(number)),
          PLATFORM_MASTER_KEY: masterKey,
          PLATFORM_BOOTSTRAP_KEY: KEY,
          PLATFORM_LOG_LEVEL: 'error',
          PLATFORM_RECOVERY_INTERVAL: '1s',
          PLATFORM_LEASE_TTL: '3s',
          PLATFORM_DEFAULT_TIMEZONE: noonZone(),
          ...(typeof vars === 'function' ? vars(number, origin) : vars),
        }
        const started = spawn(process.execPath, [`${root}runtime/cli/main.ts`, 'serve'], {
          env,
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        let said = ''
        started.stderr?.on('data', (chunk: Buffer) => {
          said = (said + String(chunk)).slice(-4000)
          lines.push(`control plane ${number}: ${String(chunk)}`)
          if (lines.length > 200) lines.shift()
        })
        child = started
        for (;;) {
          const answer = await fetch(`${origin}/readyz`).catch(() => undefined)
          await answer?.body?.cancel()
          if (answer?.status === 200) return
          if (started.exitCode !== null) throw new Error(`an instance ended with ${started.exitCode}: ${said}`)
          await new Promise(resolve => setTimeout(resolve, 20))
        }
      },
      async stop(signal) {
        if (child === undefined) return
        const ending = child
        child = undefined
        const ended = once(ending, 'exit')
        ending.kill(signal)
        await ended
      },
    })
  }
  await Promise.all(instances.map(instance => instance.start()))
  const headersOf = (key?: string) => ({
    authorization: `Bearer ${KEY}`,
    'content-type': 'application/json',
    ...(key !== undefined && { 'idempotency-key': key }),
  })
  return {
    instances,
    /** What they complained about last. */
    said: lines,
    headers: headersOf,
    /** A call to one instance; undefined where the connection broke, so that its outcome is unknown. */
    async call(instance: Instance, method: string, path: string, body?: object, headers: Record<string, string> = {}) {
      try {
        const answer = await fetch(instance.origin + path, {
          method,
          headers: { ...headersOf(), ...headers },
          ...(body && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(60_000),
        })
        return { status: answer.status, text: await answer.text() }
      } catch {
        return undefined
      }
    },
    async close() {
      await Promise.all(instances.map(instance => instance.stop('SIGKILL')))
      await rm(folder, { recursive: true, force: true })
    },
  }
}
