import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { freePort, untilAnswers } from '../bench/free-port.ts'
import { type RemoteRunEnd, remoteRunEnd } from './far-end.ts'

const root = new URL('../../', import.meta.url).pathname
const RUNTIME = `${root}runtime/cli/main.ts`
const ROUTER = `${root}router/cli/main.ts`

/** A service in a process of its own, and how long it lets others wait. */
export interface Target {
  name: string
  origin: string
  folder: string
  child: ChildProcess
  /** The delays of `/healthz` that began between two moments, in milliseconds. */
  delays(fromMs: number, toMs: number): number[]
  megabytes(): number
}

/** A tenant of the runtime with a key that may write. */
export interface Tenant {
  id: string
  key: string
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
  json<T>(method: string, path: string, body?: unknown): Promise<T>
}

export interface Arena {
  runtime: Target
  /** Asks for no key. */
  open: Target
  /** Asks for a key. */
  keyed: Target
  routerKey: string
  owner: Tenant
  victim: Tenant
  mallory: Tenant
  /** Whatever an attacker may stand up on the other side: providers, upstreams, pages. */
  remote: RemoteRunEnd
  folder: string
  /** A further program: the runtime or the router with these arguments. */
  command(
    which: 'runtime' | 'router',
    args: readonly string[],
    vars?: NodeJS.ProcessEnv,
  ): Promise<{ code: number | null; said: string }>
  /** A further service, which its attempt has to end. */
  serve(which: 'runtime' | 'router', name: string, vars?: NodeJS.ProcessEnv, node?: readonly string[]): Promise<Target>
  close(): Promise<void>
}

const CONFIG = (origin: string) => `version = 1
price = [{ model = "far/small", input_per_mtok = 1, output_per_mtok = 5 }, { model = "far/large", input_per_mtok = 3, output_per_mtok = 15 }]
provider = [{ id = "far", dialect = "chat", base_url = "${origin}/router/v1", auth = "none" }]
[[route]]
match = { model = "auto" }
mode = "enforce"
ladder = ["far/small", "far/large"]
gates = ["non-empty"]
[[route]]
match = { model = "capped" }
mode = "enforce"
ladder = ["far/small"]
[route.budget]
per_day_usd = 0.001
`

/** Both services with two tenants each, as an operator would run them, and a scripted far end. */
export async function arena(): Promise<Arena> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-attack-'))
  const remote = await remoteRunEnd()
  const targets: Target[] = []
  const places = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, TMPDIR: folder }

  const serve: Arena['serve'] = async (which, name, vars = {}, node = []) => {
    const port = await freePort()
    const own = join(folder, name)
    // A further life of one that was there.
    await mkdir(own).catch(() => undefined)
    const bind = { runtime: 'PLATFORM_BIND', router: 'ROUTER_BIND' }[which]
    const store =
      which === 'runtime'
        ? { PLATFORM_DATA_DIR: own, PLATFORM_LOG_LEVEL: 'off' }
        : { ROUTER_DB: join(own, 'router.db'), ROUTER_LOG: 'off' }
    const child = spawn(process.execPath, [...node, which === 'runtime' ? RUNTIME : ROUTER, 'serve'], {
      env: { ...places, ...store, [bind]: `127.0.0.1:${port}`, ...vars },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    process.once('exit', () => child.kill('SIGKILL'))
    let said = ''
    child.stderr?.on('data', piece => {
      said = (said + String(piece)).slice(-4000)
    })
    const origin = `http://127.0.0.1:${port}`
    const early = once(child, 'exit').then(([code]) => {
      throw new Error(`${name} ended with ${code}: ${said}`)
    })
    await Promise.race([untilAnswers(origin), early])
    early.catch(() => undefined)
    const seen: [number, number][] = []
    const watcher = new Worker(new URL('health.ts', import.meta.url), { workerData: { origin } })
    watcher.on('message', one => void seen.push(one))
    child.once('exit', () => void watcher.terminate())
    const target: Target = {
      name,
      origin,
      folder: own,
      child,
      delays: (fromMs, toMs) =>
        seen.filter(([from, took]) => from + took > fromMs && from < toMs).map(([, took]) => took),
      megabytes: () =>
        Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024,
    }
    targets.push(target)
    return target
  }

  const command: Arena['command'] = async (which, args, vars = {}) => {
    const program = which === 'runtime' ? RUNTIME : ROUTER
    const child = spawn(process.execPath, [program, ...args], { env: { ...places, ...vars }, cwd: folder })
    let said = ''
    child.stdout.on('data', piece => (said += piece))
    child.stderr.on('data', piece => (said += piece))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, said }
  }

  const routerKey = `key-${randomBytes(18).toString('hex')}`
  const ownerKey = `wb_live_${randomBytes(32).toString('base64url')}`
  const config = join(folder, 'router.toml')
  await writeFile(config, CONFIG(remote.origin))
  const upstreams = {
    ROUTER_UPSTREAM_MESSAGES: `${remote.origin}/observed`,
    ROUTER_UPSTREAM_CHAT: `${remote.origin}/observed`,
  }
  const [runtime, open, keyed] = await Promise.all([
    serve('runtime', 'runtime', {
      PLATFORM_BOOTSTRAP_KEY: ownerKey,
      PLATFORM_MASTER_KEY: randomBytes(32).toString('base64'),
      PLATFORM_OUTBOUND_ALLOW: '127.0.0.1',
      PLATFORM_MAX_CONCURRENT_RUNS: '16',
    }),
    serve('router', 'open', { ...upstreams, ROUTER_CONFIG: config }),
    serve('router', 'keyed', { ...upstreams, ROUTER_CONFIG: config, ROUTER_KEYS: `acme:${routerKey}` }),
  ])

  function tenant(id: string, key: string): Tenant {
    const call: Tenant['call'] = (method, path, body, headers = {}) =>
      fetch(runtime.origin + path, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
    return {
      id,
      key,
      call,
      async json<T>(method: string, path: string, body?: unknown) {
        const answer = await call(method, path, body)
        const text = await answer.text()
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
        return (text === '' ? undefined : JSON.parse(text)) as T
      },
    }
  }
  const owner = tenant('default', ownerKey)
  async function made(name: string): Promise<Tenant> {
    const { id } = await owner.json<{ id: string }>('POST', '/v1/tenants', { name })
    const body = { name: 'attack', scopes: ['write', 'read'] }
    const { rawKey } = await owner.json<{ rawKey: string }>('POST', `/v1/tenants/${id}/api-keys`, body)
    return tenant(id, rawKey)
  }
  return {
    runtime,
    open,
    keyed,
    routerKey,
    remote,
    folder,
    command,
    serve,
    owner,
    victim: await made('victim'),
    mallory: await made('mallory'),
    async close() {
      for (const { child } of targets) child.kill('SIGKILL')
      await remote.close()
      await wait(200)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
