import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { afterBody } from '../../shared/http/after-body.ts'
import { OutboundDenied } from '../../shared/http/outbound/bounded-body.ts'
import { type EgressClient, guardedFetch } from '../../shared/http/outbound/egress-client.ts'
import { type OutboundRule, outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { createLog } from '../../shared/log/log.ts'
import { type Counter, createMetrics, type Gauge, type Histogram, type Metrics } from '../../shared/metrics/metrics.ts'
import { type Db, prepareDb } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-fault.ts'
import { fetchTransport } from '../../shared/sql/hrana/fetch-transport.ts'
import { serverAddress } from '../../shared/sql/hrana/server-address.ts'
import { serverClient } from '../../shared/sql/hrana/server-client.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { setupLink } from '../auth/access.ts'
import { throttleOfLogins } from '../auth/throttle.ts'
import { readOAuthClients } from '../connectors/oauth/clients.ts'
import { runtimeEnv } from '../env.ts'
import type { Connection } from '../http/http-env.ts'
import { readProviders } from '../providers/environment.ts'
import { createRuntime, type Learnt, type Runtime } from '../runtime.ts'

type Vars = Record<string, string | undefined>

/** What the platform lends to one event. */
interface Event {
  waitUntil(work: Promise<unknown>): void
}

/** How long what an event began goes on after its answer; a platform gives 30 s, and what is open then waits for the next look. */
const ADVANCE_MS = 20_000

/** What outlives the events of this isolate. */
const metrics = lastingMetrics()
const loginTries = throttleOfLogins(systemClock.monotonic)
let first: Promise<Learnt> | undefined

/**
 * The runtime on a WinterCG host. There is no disk here, so its store is a libSQL server. Timers and connections end with the event that
 * opened them, so each event has a runtime of its own, which executes the runs that it started until they end or the time is up.
 */
export default {
  async fetch(request: Request, vars: Vars, event: Event): Promise<Response> {
    const { runtime, done } = await ofEvent(vars)
    const { promise: over, resolve } = Promise.withResolvers<void>()
    event.waitUntil(over.then(done))
    try {
      const { response, taken } = afterBody(await runtime.fetch(request, connectionOf(request)))
      void taken.then(resolve)
      return response
    } catch (error) {
      resolve()
      throw error
    }
  },
  /** By a cron trigger of the platform, each minute: what is due, and what other events left unfinished. */
  async scheduled(_event: unknown, vars: Vars, event: Event): Promise<void> {
    const { runtime, done } = await ofEvent(vars)
    const work = runtime.scheduled().finally(done)
    event.waitUntil(work)
    await work
  },
}

/** A runtime for one event. The first of an isolate prepares the store, those after it take its word for it. */
async function ofEvent(vars: Vars): Promise<{ runtime: Runtime; done: () => Promise<void> }> {
  const learnt = await first?.catch(() => undefined)
  const { runtime, db } = await start(vars, learnt)
  const done = async () => {
    await runtime.advance(ADVANCE_MS)
    await runtime.close()
    await db.close()
  }
  if (learnt) {
    await runtime.ready()
    return { runtime, done }
  }
  const learning = runtime.learnt()
  try {
    await learning
  } catch (error) {
    db.close()
    throw error
  }
  if (first === undefined) await tellSetup(vars, runtime)
  first = learning
  return { runtime, done }
}

async function tellSetup({ PLATFORM_BOOTSTRAP_KEY: key, PLATFORM_PUBLIC_URL: url }: Vars, runtime: Runtime) {
  const token = key ? undefined : await runtime.setupToken()
  if (token !== undefined) console.error(`setup    ${setupLink(url ?? '', token)}`)
}

async function start(vars: Vars, learnt: Learnt | undefined): Promise<{ runtime: Runtime; db: Db }> {
  refuseFiles(vars)
  const env = readEnv(runtimeEnv, vars)
  const { PLATFORM_DATABASE_URL: url, PLATFORM_DATABASE_TOKEN: authToken } = env
  if (url === undefined || !/^(?:https?|libsql|wss?):/.test(url)) {
    throw new DbOpenError(
      'bad_url',
      'PLATFORM_DATABASE_URL: this host has no files; set the address of a libSQL server',
    )
  }
  const address = serverAddress(url, authToken)
  const client = serverClient({ url: address.url, transport: fetchTransport(address) })
  const db = await prepareDb(client, { kind: 'remote', writes: client.writes })
  const log = createLog({ filter: env.PLATFORM_LOG_LEVEL, write: line => console.error(line) })
  const { PLATFORM_MASTER_KEY: masterKey, PLATFORM_BOOTSTRAP_KEY: bootstrapKey, PLATFORM_PUBLIC_URL: publicUrl } = env
  for (const secret of [
    authToken,
    env.PLATFORM_METRICS_TOKEN,
    bootstrapKey,
    vars.PLATFORM_MASTER_KEY,
    vars.PLATFORM_RECEIPT_KEY,
  ]) {
    log.redact.register(secret)
  }
  if (masterKey === undefined && !learnt) {
    log.warn(
      'PLATFORM_MASTER_KEY is not set, and there is no disk to keep one on: no secret can be stored, and run data stands in clear',
    )
  }
  const metricsAccess = { open: false, token: env.PLATFORM_METRICS_TOKEN } as const
  const maxBodyBytes = env.PLATFORM_MAX_BODY_BYTES
  const egress = platformEgress(outboundRule(env.PLATFORM_OUTBOUND_ALLOW))
  const demo = env.PLATFORM_DEMO !== 'off'
  const providers = readProviders(vars)
  const oauthClients = readOAuthClients(vars)
  for (const { secret } of oauthClients.values()) log.redact.register(secret)
  const runtime = createRuntime({
    metrics,
    loginTries,
    learnt,
    db,
    log,
    maxBodyBytes,
    metricsAccess,
    masterKey,
    bootstrapKey,
    publicUrl,
    egress,
    demo,
    providers,
    oauthClients,
    defaultTimezone: env.PLATFORM_DEFAULT_TIMEZONE,
    receiptSeed: env.PLATFORM_RECEIPT_KEY,
    timers: false,
    sseHeartbeatMs: env.PLATFORM_SSE_HEARTBEAT,
    maxTenantStreams: env.PLATFORM_MAX_TENANT_STREAMS,
    turnTimeoutMs: env.PLATFORM_TURN_TIMEOUT,
    embeddedNode: env.PLATFORM_EMBEDDED_NODE === 'on',
    dispatchTimeoutMs: env.PLATFORM_DISPATCH_TIMEOUT,
    nodeLostAfterMs: env.PLATFORM_NODE_LOST_AFTER,
    limits: { maxConcurrent: env.PLATFORM_MAX_CONCURRENT_RUNS, leaseMs: env.PLATFORM_LEASE_TTL },
    providerDeadlines: { contentMs: env.PLATFORM_MODEL_CONTENT_TIMEOUT },
    corsOrigins: env.PLATFORM_CORS_ORIGINS,
    retentionDays: env.PLATFORM_RETENTION_DAYS,
  })
  return { runtime, db }
}

/** What names a file or needs a socket of its own is refused by name: silence would look like a setting that works. */
function refuseFiles(vars: Vars): void {
  for (const [name, instead] of Object.entries(OF_OTHER_HOSTS)) {
    if (vars[name]) throw new EnvError(`${name}: ${instead}`)
  }
}

const OF_OTHER_HOSTS: Readonly<Record<string, string>> = {
  PLATFORM_DIRECTORY_URL: 'this host serves one database: set PLATFORM_DATABASE_URL, or serve shards on Node',
  PLATFORM_DATABASE_REPLICA_URL: 'this host does not look at a replica; name it to a control plane on Node',
  PLATFORM_OTLP_ENDPOINT: 'this host sends no traces; a control plane on Node does',
  PLATFORM_MASTER_KEY_FILE: 'this host has no files; put the key into PLATFORM_MASTER_KEY',
  PLATFORM_TUNNEL_BIND: 'nodes cannot dial in to this host; run a control plane on Node on the same store for them',
  PLATFORM_PEER_URL: 'this host asks no other control planes for their nodes; ask one that runs on Node',
}

/** The address that the edge saw; it sets this header itself and lets none through. */
function connectionOf(request: Request): Connection {
  const address = request.headers.get('cf-connecting-ip')
  return address === null ? {} : { address }
}

/** A registry for parts that are made again and again in one process: who registers a name a second time counts on under it. */
export function lastingMetrics(): Metrics {
  const metrics = createMetrics()
  const counters = new Map<string, Counter>()
  const gauges = new Map<string, Gauge>()
  const histograms = new Map<string, Histogram>()
  return {
    ...metrics,
    counter: (name, help, from) => known(counters, name, () => metrics.counter(name, help, from)),
    gauge: (name, help) => known(gauges, name, () => metrics.gauge(name, help)),
    histogram: (name, help, buckets) => known(histograms, name, () => metrics.histogram(name, help, buckets)),
  }
}

function known<T>(all: Map<string, T>, name: string, make: () => T): T {
  const found = all.get(name)
  if (found !== undefined) return found
  const made = make()
  all.set(name, made)
  return made
}

/**
 * The way out of hosts that have only `fetch`. They do not say what a name resolves to, so literal addresses and names of
 * private networks are refused here, and that a public name does not lead inside is up to the platform's own network.
 */
export function platformEgress(
  rule: OutboundRule,
  fetchFn: typeof fetch = (...given) => fetch(...given),
): EgressClient {
  const problemOf = (url: URL) => rule.url(url) ?? rule.name(url)
  return {
    fetch: guardedFetch(rule, async (url, { method, headers, body, signal }) => {
      const problem = rule.name(url)
      if (problem !== undefined) throw new OutboundDenied(problem)
      return fetchFn(url, {
        ...(method !== undefined && { method }),
        ...(headers && { headers: { ...headers } }),
        ...(body !== undefined && { body }),
        signal,
        redirect: 'manual',
      })
    }),
    problem: async url => problemOf(url),
    async close() {},
  }
}
