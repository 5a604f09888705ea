import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { EnvError, namesProxy, readEnv } from '../../shared/env/read-env.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import {
  cutConnection,
  hostFacts,
  listen,
  type RenderOptions,
  refuseLowLimits,
  type Service,
  usualHeldBytes,
} from '../../shared/host/serve.ts'
import { stderrLines } from '../../shared/host/stderr-lines.ts'
import { createLog, type Log } from '../../shared/log/log.ts'
import { type RouterEnv, routerEnv } from '../env.ts'
import type { RouterOptions } from '../options.ts'
import { bodyRoom } from '../proxy/handle-call.ts'
import { readAccess } from './access.ts'
import { logAnchorFault } from './anchor-file.ts'
import { configFileReader, readConfigFile } from './config-file.ts'
import { credentialHost } from './credential-host.ts'
import { nodeCalls } from './node-exchange.ts'
import { openRouter } from './open-router.ts'
import type { JoinedProcesses } from './processes/other-processes.ts'
import { receiptLocation } from './receipt-location.ts'
import { regexWorkers } from './regex-worker.ts'
import { processRunner } from './run-process.ts'
import type { ServedRouter } from './shards/open-shards.ts'
import { networkTransport } from './undici-transport.ts'
import { unknownNames } from './unknown-names.ts'

const HEADER_BYTES = 65_536

type Vars = Record<string, string | undefined>

/** What the service beside this one adds. */
export interface RouterParts {
  dashboard?: () => string | undefined
  /** One of several processes at an address, and the socket of the one that writes. */
  among?: { others: JoinedProcesses; count: number; writer: string; accepted: NonNullable<RenderOptions['accepted']> }
}

/** Idle connections of a process that another one replaces stay so long: their callers hear at their next call that it ends. */
const RESTART_GRACE_MS = 2000

export interface RouterService extends Service {
  /** With `restart` others go on at its address. */
  close(why?: 'restart' | 'stop'): Promise<void>
}

/** The router on Node: environment and files in, a listening socket out. */
export async function serveRouter(vars: Vars, { dashboard, among }: RouterParts = {}): Promise<RouterService> {
  const env = readEnv(routerEnv, vars)
  refuseLowLimits()
  if (vars.ROUTER_DB_REPLICA_OF)
    throw new EnvError('ROUTER_DB_REPLICA_OF: a router writes its store: name the server itself in ROUTER_DB.')
  if (vars.ROUTER_DIRECTORY_URL && vars.ROUTER_DB)
    throw new EnvError('ROUTER_DIRECTORY_URL names the stores of this router: leave ROUTER_DB out.')
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: stderrLines(env.ROUTER_LOG_FORMAT) })
  for (const [name, value] of Object.entries(vars))
    if (/(?:KEY|SECRET|TOKEN|SALT|IDENTITY_HEADER|TOKEN_BEDROCK)$/.test(name)) log.redact.register(value)
  const network = namesProxy(vars) ? (await import('../../shared/host/proxy-agent.ts')).networkOf(vars) : undefined
  for (const secret of network?.secrets ?? []) log.redact.register(secret)
  const access = await readAccess(env, log)
  const { ROUTER_CONFIG: configFile } = env
  const readConfig = configFile === undefined ? undefined : () => readConfigFile(configFile)
  const config = await readConfig?.()
  for (const line of unknownNames(vars, config)) log.warn(line)
  if (!among) await logAnchorFault(env, log)
  const transport = await networkTransport({ connectMs: 10_000 }, network)
  const regexRunner = regexWorkers()
  const runProcess = processRunner({ vars, log: log.target('router.gates') })
  const calls = nodeCalls(among?.count)
  const options: Omit<RouterOptions, 'db' | 'receiptStorage'> = {
    ...(config !== undefined && { config }),
    ...(readConfig && { readConfig }),
    configFile: configFile ?? 'config',
    readFile: configFileReader(configFile),
    access,
    inFlight: calls.inFlight,
    room: bodyRoom(usualHeldBytes(), among?.count),
    host: hostFacts(folderOf(env)),
    cut: cutConnection,
    log,
    transport,
    sha256: nativeSha256,
    gates: { runProcess, regexRunner, fetch: network?.fetch ?? fetch, env: name => vars[name] },
    env: { ...vars, ROUTER_MODE: env.ROUTER_MODE },
    credentialHost: credentialHost(vars),
    tenantId: env.ROUTER_TENANT,
    ...(env.ROUTER_PROMPT_SALT !== undefined && { promptSalt: env.ROUTER_PROMPT_SALT }),
    responseHeaders: env.ROUTER_RESPONSE_HEADERS,
    ...(dashboard && { dashboard }),
    ...(among && { others: among.others }),
  }
  const router = env.ROUTER_DIRECTORY_URL
    ? await (await import('./shards/open-shards.ts')).openShards({ env, access, log, options })
    : await oneStore(env, { ...receiptLocation(env), writer: among?.writer }, options)
  const server = await listen({
    bind: env.ROUTER_BIND,
    fetch: router.fetch,
    direct: calls.accept(router.handleCall()),
    bodyMs: 60_000,
    maxHeaderBytes: HEADER_BYTES,
    ...(among && { accepted: among.accepted }),
  })
  const stopReloading = readConfig ? reloadOnHangup(router.reload) : () => undefined
  const stopWatching =
    env.ROUTER_WATCH && configFile !== undefined ? reloadOnChange(configFile, router.reload, log) : () => undefined
  // Calls are served by now; what loads until here loads in a small heap.
  await router.settled
  return {
    origin: server.origin,
    async close(why = 'stop') {
      stopReloading()
      stopWatching()
      if (why === 'stop') router.drain()
      await server.close(env.ROUTER_DRAIN_SECONDS * 1000, why === 'restart' ? RESTART_GRACE_MS : 0)
      await router.close()
      await among?.others.close()
      await runProcess.close()
      await regexRunner.close()
    },
  }
}

/** Where the store is a file. */
function folderOf({ ROUTER_DB: db, ROUTER_DIRECTORY_URL: directory }: RouterEnv): string | undefined {
  return directory !== undefined || db === ':memory:' || /^[a-z]+:\/\//.test(db)
    ? undefined
    : dirname(resolve(db.replace(/^file:/, '')))
}

async function oneStore(...given: Parameters<typeof openRouter>): Promise<ServedRouter> {
  const { router, settled, release } = await openRouter(...given)
  return {
    ...router,
    settled,
    async close() {
      await router.close()
      await release()
    },
  }
}

/** SIGHUP reads the config anew; one that cannot be used is logged and the old one stays. */
function reloadOnHangup(reload: () => Promise<unknown>): () => void {
  const onHangup = () => void reload().catch(() => undefined)
  process.on('SIGHUP', onHangup)
  return () => void process.off('SIGHUP', onHangup)
}

/** A file is written in several steps; it is read when it has been quiet for this long. */
const QUIET_MS = 100

/** ROUTER_WATCH: reads the config anew when its file changes. The folder is watched, since editors put a new file in place. */
function reloadOnChange(file: string, reload: () => Promise<unknown>, log: Log): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let watcher: FSWatcher | undefined
  const name = basename(file)
  const changed = (_: string, what: string | null): void => {
    if (what !== null && what !== name) return
    clearTimeout(timer)
    // One that cannot be used is logged by the reload, and the old one stays.
    timer = setTimeout(() => void reload().catch(() => undefined), QUIET_MS)
  }
  const failed = (error: unknown) =>
    log.error('the routing config is not watched any more: reload it with SIGHUP', { error })
  try {
    watcher = watch(dirname(resolve(file)), { persistent: false }, changed)
    watcher.on('error', failed)
  } catch (error) {
    failed(error)
  }
  return () => {
    clearTimeout(timer)
    watcher?.close()
  }
}
