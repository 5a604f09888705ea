import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { namesProxy, readEnv } from '../../shared/env/read-env.ts'
import { nativeCipher, nativeScrypt } from '../../shared/host/native-crypto.ts'
import { nativeCurveKeys } from '../../shared/host/native-curve-keys.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import type { Ending } from '../../shared/host/processes/messages.ts'
import {
  type Caller,
  hostFacts,
  type Listening,
  listen,
  memoryLimit,
  refuseLowLimits,
  type Service,
  usualHeldBytes,
} from '../../shared/host/serve.ts'
import { stderrLines } from '../../shared/host/stderr-lines.ts'
import { writerIsGone, writerName } from '../../shared/host/writer-name.ts'
import { type Bind, isLoopback } from '../../shared/http/bind.ts'
import { callerAddress, type TrustedProxies } from '../../shared/http/forwarded.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { createLog, type Log } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { collectorOf } from '../../shared/telemetry/collector.ts'
import { setupLink } from '../auth/access.ts'
import { readOAuthClients } from '../connectors/oauth/clients.ts'
import { DEFAULT_TUNNEL, type RuntimeEnv, runtimeEnv } from '../env.ts'
import type { Connection } from '../http/http-env.ts'
import { readProviders } from '../providers/environment.ts'
import { createRuntime, type Runtime, type RuntimeOptions } from '../runtime.ts'
import { unknownNames } from './examine.ts'
import { lazySandboxes } from './lazy-sandboxes.ts'
import { masterKeyOf } from './master-key-file.ts'
import { lostLogOf, openReplicaStore, openServedStore, refuseShards } from './open.ts'
import type { ServedRuntime } from './open-shards.ts'
import type { ProcessPeers } from './processes/join-processes.ts'
import type { ListeningTunnel } from './tunnel.ts'

export interface RuntimeService extends Service {
  /** With `restart` others go on at its address. */
  close(why?: Ending): Promise<void>
  /** Where the first owner is made; undefined once there is one. */
  setupLink: string | undefined
}

/** What a program that runs more than the runtime hands over. */
export interface RuntimeParts {
  /** The router of this process, for `auto`. */
  routerFetch?: (request: Request) => Promise<Response>
  /** Vendors that are somewhere else than at their own address. */
  oauthHomes?: RuntimeOptions['oauthHomes']
  /** Where the panel of that router is, once it listens. */
  routerPanel?: () => string | undefined
  /** Where this is one of several processes at an address. */
  among?: ProcessPeers
  /** Whether a link to make the first owner is wanted of this one. Default: yes. */
  offersSetup?: boolean
}

/** A log that knows every secret which it must not write. */
function logOf(env: RuntimeEnv, secrets: readonly (string | undefined)[]) {
  const log = createLog({ filter: env.PLATFORM_LOG_LEVEL, write: stderrLines(env.PLATFORM_LOG_FORMAT) })
  const { PLATFORM_DATABASE_TOKEN, PLATFORM_METRICS_TOKEN, PLATFORM_BOOTSTRAP_KEY } = env
  for (const secret of [PLATFORM_DATABASE_TOKEN, PLATFORM_METRICS_TOKEN, PLATFORM_BOOTSTRAP_KEY, ...secrets]) {
    log.redact.register(secret)
  }
  return log
}

/** The runtime on Node: environment and files in, a listening socket out. */
export async function serveRuntime(
  vars: Record<string, string | undefined>,
  { routerFetch, routerPanel, oauthHomes, among, offersSetup = true }: RuntimeParts = {},
): Promise<RuntimeService> {
  const env = readEnv(runtimeEnv, vars)
  refuseLowLimits()
  refuseShards(env)
  const providers = readProviders(vars)
  const oauthClients = readOAuthClients(vars)
  const secrets = [...oauthClients.values()].map(({ secret }) => secret)
  const network = namesProxy(vars) ? (await import('../../shared/host/proxy-agent.ts')).networkOf(vars) : undefined
  const hidden = [...secrets, ...(network?.secrets ?? []), vars.PLATFORM_MASTER_KEY, vars.PLATFORM_RECEIPT_KEY]
  const log = logOf(env, hidden)
  for (const line of unknownNames(vars)) log.warn(line)
  const open = isLoopback(env.PLATFORM_BIND.host)
  const rule = outboundRule(env.PLATFORM_OUTBOUND_ALLOW)
  const egress = nodeEgress({ rule, log: log.target('runtime.outbound'), proxies: network })
  // What these two refuse ends the start: no store is open yet, whose thread would keep the process.
  const sandboxes = lazySandboxes(vars, {
    workspaces: join(env.PLATFORM_DATA_DIR, 'workspaces'),
    rule,
    proxies: network,
    log: log.target('node.isolation'),
  })
  const masterKey = await masterKeyOf(env, log)
  const store = env.PLATFORM_DIRECTORY_URL === undefined ? await openStores(env, log) : undefined
  const options: Omit<RuntimeOptions, 'db'> = {
    log,
    sandboxes,
    maxBodyBytes: env.PLATFORM_MAX_BODY_BYTES,
    // A body becomes about five times its length on its way to the store.
    bodyBytesAtATime: Math.max(8 * 1024 * 1024, memoryLimit() / 64),
    answerBytesAtATime: usualHeldBytes(),
    // Measured: the copies become about eleven times their length on their way to the store.
    copiedBytesAtMost: usualHeldBytes() / 4,
    corsOrigins: env.PLATFORM_CORS_ORIGINS,
    retentionDays: env.PLATFORM_RETENTION_DAYS,
    metricsAccess:
      open && env.PLATFORM_METRICS_TOKEN === undefined ? { open } : { open: false, token: env.PLATFORM_METRICS_TOKEN },
    host: hostFacts(env.PLATFORM_DATA_DIR),
    masterKey,
    cipher: nativeCipher,
    defaultTimezone: env.PLATFORM_DEFAULT_TIMEZONE,
    receiptSeed: env.PLATFORM_RECEIPT_KEY,
    bootstrapKey: env.PLATFORM_BOOTSTRAP_KEY,
    publicUrl: env.PLATFORM_PUBLIC_URL,
    scrypt: nativeScrypt,
    gzip: text => new Uint8Array(gzipSync(text, { level: 9 })),
    telemetry: collectorOf(env, network?.fetch),
    egress,
    providers,
    oauthClients,
    oauthHomes,
    routerFetch,
    // Who comes by another name than this machine's would not reach a socket beside it.
    routerPanel: env.PLATFORM_PUBLIC_URL === undefined && open ? routerPanel : undefined,
    demo: env.PLATFORM_DEMO !== 'off',
    providerDeadlines: { contentMs: env.PLATFORM_MODEL_CONTENT_TIMEOUT },
    sha256: nativeSha256,
    curveKeys: nativeCurveKeys,
    owner: writerName(),
    isGone: writerIsGone,
    sseHeartbeatMs: env.PLATFORM_SSE_HEARTBEAT,
    maxTenantStreams: env.PLATFORM_MAX_TENANT_STREAMS,
    turnTimeoutMs: env.PLATFORM_TURN_TIMEOUT,
    peer: among?.peer ?? peerOf(env),
    embeddedNode: env.PLATFORM_EMBEDDED_NODE === 'on',
    dispatchTimeoutMs: env.PLATFORM_DISPATCH_TIMEOUT,
    nodeLostAfterMs: env.PLATFORM_NODE_LOST_AFTER,
    limits: {
      maxConcurrent: env.PLATFORM_MAX_CONCURRENT_RUNS,
      leaseMs: env.PLATFORM_LEASE_TTL,
      recoveryMs: env.PLATFORM_RECOVERY_INTERVAL,
    },
  }
  const runtime = store
    ? serveStore(store, { ...options, loginTries: among?.loginTries('') })
    : await (await import('./open-shards.ts')).serveShards({ env, options, log, loginTries: among?.loginTries })
  const opened: Opened = {}
  async function release(): Promise<void> {
    await sandboxes.close()
    await egress.close()
    await runtime.closeStores()
  }
  const close = closing({ env, runtime, opened, among, release })
  const answer = (request: Request, caller: Caller) =>
    runtime.fetch(request, connectionOf(request, caller, env.PLATFORM_TRUSTED_PROXIES))
  try {
    await runtime.ready()
    // From now on it hears of work of the others.
    const shared = among && answeringPeers(among, { runtime, token: env.PLATFORM_METRICS_TOKEN, answer })
    opened.tunnel = await tunnelOf({ env, runtime, log: log.target('runtime.nodes'), among })
    opened.server = await listen({
      bind: env.PLATFORM_BIND,
      fetch: shared ?? answer,
      bodyMs: 30_000,
      ...(among && { accepted: among.accepted }),
    })
  } catch (error) {
    // What works already would keep the process alive, and take runs that no client can ask about.
    await close()
    throw error
  }
  const { origin } = opened.server
  void sandboxes.selfTest().catch((error: unknown) => log.warn('isolation backends could not be tried', { error }))
  // An operator with a key of their own needs no browser to start.
  const token = env.PLATFORM_BOOTSTRAP_KEY === undefined && offersSetup ? await runtime.setupToken() : undefined
  return { origin, setupLink: token && setupLink(env.PLATFORM_PUBLIC_URL ?? origin, token), close }
}

interface Opened {
  server?: Listening
  tunnel?: { close(): Promise<void> }
}

interface ClosingDeps {
  env: RuntimeEnv
  runtime: ServedRuntime
  opened: Opened
  among: ProcessPeers | undefined
  release(): Promise<void>
}

/** Idle connections of a process that another one replaces stay so long: their callers hear at their next call that it ends. */
const RESTART_GRACE_MS = 2000

function closing({ env, runtime, opened, among, release }: ClosingDeps) {
  return async (why: Ending = 'stop'): Promise<void> => {
    const isReplaced = why === 'restart'
    runtime.drain(why)
    opened.server?.drain()
    // What is made from now on, and what was parked here, is the others'.
    if (isReplaced) among?.wakeOthers()
    const until = performance.now() + env.PLATFORM_DRAIN_TIMEOUT
    const leftMs = () => Math.max(0, until - performance.now())
    await opened.tunnel?.close()
    const served = isReplaced ? opened.server?.close(env.PLATFORM_DRAIN_TIMEOUT, RESTART_GRACE_MS) : undefined
    // Until then the socket stays open: callers are refused in words, and may read what becomes of their runs.
    await Promise.all([runtime.settled(env.PLATFORM_DRAIN_TIMEOUT), isReplaced && pause(RESTART_GRACE_MS)])
    among?.leave()
    await Promise.all([served ?? opened.server?.close(leftMs()), runtime.close(leftMs())])
    if (among) among.last(await ownPage(runtime, env.PLATFORM_METRICS_TOKEN).catch(() => ''))
    await release()
  }
}

const METRICS = '/metrics'

async function ownPage(runtime: Pick<ServedRuntime, 'fetch'>, token: string | undefined): Promise<string> {
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  const answer = await runtime.fetch(new Request(`http://localhost${METRICS}`, { headers }))
  return answer.status === 200 ? answer.text() : ''
}

interface AnsweringDeps {
  runtime: ServedRuntime
  token: string | undefined
  answer: (request: Request, caller: Caller) => Promise<Response>
}

/** What this process answers to the others, and how its own answers are those of all. */
function answeringPeers(among: ProcessPeers, { runtime, token, answer }: AnsweringDeps): typeof answer {
  among.answer({
    wake: runtime.wake,
    page: () => ownPage(runtime, token),
    fetch: request => runtime.fetch(request),
  })
  return async (request, caller) => {
    const response = await answer(request, caller)
    if (request.method === 'POST' && runtime.busy()) among.wakeOthers()
    if (request.method !== 'GET' || response.status !== 200 || new URL(request.url).pathname !== METRICS)
      return response
    return new Response(await among.page(await response.text()), { headers: response.headers })
  }
}

async function openStores(env: RuntimeEnv, log: Log): Promise<{ db: Db; replica: Db | undefined }> {
  const lostLog = await lostLogOf(env)
  const db = await openServedStore(env, why => {
    log.error('the thread that writes the store ended, and the service with it: start it again, and it goes on', {
      why,
    })
    process.exit(1)
  })
  const lost = await lostLog(db)
  if (lost !== undefined) log.warn(`the store may lack its last commits: ${lost}`)
  return { db, replica: await openReplicaStore(env) }
}

/** One runtime on one store. */
function serveStore(
  { db, replica }: { db: Db; replica: Db | undefined },
  options: Omit<RuntimeOptions, 'db'>,
): ServedRuntime {
  const closeStores = () => {
    replica?.close()
    return db.close()
  }
  return { ...createRuntime({ ...options, db, replica }), closeStores }
}

function peerOf({ PLATFORM_PEER_URL: url }: RuntimeEnv): RuntimeOptions['peer'] {
  return url === undefined ? undefined : { url, fetch: toOtherPeers }
}

/** Past the rules for what leaves on behalf of tenants: these are addresses of this installation, and most often private ones. */
const toOtherPeers = (request: Request): Promise<Response> => fetch(request)

interface TunnelDeps {
  env: RuntimeEnv
  runtime: Pick<Runtime, 'nodes'>
  log: Log
  among: ProcessPeers | undefined
}

/**
 * Where nodes dial in. An address that was asked for must be had; the default one is listened on as soon as a node is
 * announced, so that a service without nodes opens one port and loads nothing more.
 */
async function tunnelOf({ env, runtime, log, among }: TunnelDeps): Promise<{ close(): Promise<void> }> {
  const { PLATFORM_TUNNEL_TLS_CERT: cert, PLATFORM_TUNNEL_TLS_KEY: key } = env
  const bind = env.PLATFORM_TUNNEL_BIND
  let open: Promise<ListeningTunnel | undefined> | undefined
  const listening = async (at: Bind): Promise<ListeningTunnel> => {
    const { listenForNodes } = await import('./tunnel.ts')
    const tls = cert !== undefined && key !== undefined ? { cert, key } : undefined
    const insecure = env.PLATFORM_TUNNEL_INSECURE === '1'
    const accepted = among && {
      port: Number(new URL(await among.tunnel.open()).port),
      each: among.tunnel.each,
    }
    const tunnel = await listenForNodes({ gateway: runtime.nodes.gateway, bind: at, tls, insecure, accepted })
    runtime.nodes.listening(tunnel.at)
    log.info('nodes may dial in', { endpoint: tunnel.at.endpoint })
    return tunnel
  }
  if (bind !== undefined) {
    const tunnel = await listening(bind)
    open = Promise.resolve(tunnel)
  } else {
    const listenNow = () => {
      open ??= listening(DEFAULT_TUNNEL).catch((error: unknown) => {
        log.error('nodes cannot dial in: set PLATFORM_TUNNEL_BIND to a free address', { error })
        return undefined
      })
      return open
    }
    runtime.nodes.whenWanted(listenNow)
    among?.tunnel.whenOpen(listenNow)
  }
  return { close: async () => (await open)?.close() }
}

/** The address of the socket, unless that is a proxy whose word is trusted: a header can be forged. */
function connectionOf(request: Request, caller: Caller, trusted: TrustedProxies): Connection {
  const address = callerAddress(caller.socket.remoteAddress, request.headers.get('x-forwarded-for'), trusted)
  return address === undefined ? {} : { address }
}
