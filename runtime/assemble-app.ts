import type { ChangeFeed } from '../shared/http/change-feed.ts'
import { hostMetrics } from '../shared/metrics/metrics.ts'
import { EMBEDDED_POOL, POOL_LABEL } from './agents/pool-label.ts'
import { type AppDeps, runtimeApp } from './app.ts'
import type { Execution } from './assemble-execution.ts'
import type { Features } from './assemble-features.ts'
import { DEFAULT_BODY_BYTES } from './assemble-work.ts'
import type { Core } from './core.ts'
import { noSandboxes } from './execution/sandbox/sandboxes.ts'
import { replicaLag } from './health/readiness.ts'
import { streamClients } from './http/stream-clients.ts'
import type { Nodes } from './nodes/assemble.ts'
import type { RuntimeOptions } from './options.ts'
import { overviewService } from './overview/service.ts'
import { overviewStore } from './overview/store.ts'
import { redactionOf } from './privacy/redaction.ts'
import type { RunIndex } from './runs/search/run-index.ts'
import type { Scheduling } from './schedules/assemble.ts'
import { manifestSecrets } from './secrets/manifest-check.ts'
import { sessionService } from './sessions/service.ts'
import { sessionMachinesOf } from './sessions/session-vms.ts'

export interface AppParts extends Pick<AppDeps, 'readiness' | 'draining'> {
  features: Features
  nodes: Nodes
  work: Execution
  schedules: Scheduling['schedules']
  live: ChangeFeed
  index: RunIndex
}

/** The HTTP surface over the features: each route gets what it needs of them. */
export function assembleApp(core: Core, options: RuntimeOptions, parts: AppParts) {
  const { log, clock, metrics, sha256, publicUrl, dayOf, db } = core
  const { features, nodes, work, schedules, live, index, readiness, draining } = parts
  const { access, agents, audit, budgets, connectors, prices, provided, receipts } = features
  const { maxBodyBytes = DEFAULT_BODY_BYTES, sseHeartbeatMs: heartbeatMs = 15_000, embeddedNode = true } = options
  const clients = streamClients(metrics, options.maxTenantStreams)
  return runtimeApp({
    ...access,
    log: log.target('runtime.http'),
    maxBodyBytes,
    bodyBytesAtATime: options.bodyBytesAtATime ?? Number.POSITIVE_INFINITY,
    corsOrigins: options.corsOrigins ?? [],
    monotonic: clock.monotonic,
    metrics,
    access: options.metricsAccess ?? { open: true },
    refresh: refreshGauges(core, options),
    requestSeconds: metrics.histogram('waybill_http_request_duration_seconds', 'Time from request to answer.'),
    readiness,
    pages: {
      users: access.dashboard.users,
      takesBootstrapKey: options.bootstrapKey !== undefined,
      live,
      clients,
      now: clock.now,
      monotonic: clock.monotonic,
      maxBodyBytes,
      publicUrl,
      heartbeatMs,
      routerPanel: options.routerPanel,
      gzip: options.gzip,
    },
    agents: {
      agents,
      async installedConnectors(tenantId) {
        const here = await connectors.service.store.ids(tenantId)
        return new Set([...here, ...(await nodes.credentials.connectors(tenantId))])
      },
      backendsOf: nodes.backendsOf,
      tryWasm: async () => embeddedNode && options.sandboxes?.offered(['wasm']),
      unsealed: nodes.unsealed,
      checkPriced: prices.ofManifest,
      outboundProblem: async url => (embeddedNode ? core.egress?.problem(url) : undefined),
      async hasKeptBudget({ id, createdMs }) {
        const budget = await budgets.store.get(id)
        return budget !== undefined && budget.createdMs < createdMs
      },
      checkSecrets: manifestSecrets(async ({ tenantId, name, labels }, names) => {
        const { [POOL_LABEL]: pool } = labels ?? (await agents.getByName(tenantId, name))?.labels ?? {}
        const here = embeddedNode && (pool === undefined || pool === EMBEDDED_POOL)
        return [
          ...(here ? [await provided.secrets.bindings(tenantId, names)] : []),
          ...(await nodes.credentials.bindings(tenantId, pool, names)),
        ]
      }),
    },
    runs: { runs: work.runs, service: work.service, index },
    journals: {
      clients,
      runs: work.runs,
      requests: work.requests,
      runWatchers: work.engine.watchers,
      sha256,
      heartbeatMs,
    },
    approvals: {
      approvals: work.approvals,
      findRun: work.runs.summary,
      async redactionOf(runId) {
        const run = await work.runs.summary(runId)
        const version = run && (await agents.getVersion(run.agentVersionId))
        return version && redactionOf(version.manifest)
      },
      now: clock.now,
      wake: work.engine.wake,
    },
    providers: { ...provided.providers, settingsToNodes: nodes.credentials.modelSettings },
    secrets: { secrets: provided.secrets },
    budgets: { db, ...budgets, prices, agents, dayOf, now: clock.now },
    overview: { overviews: overviewService({ store: overviewStore(db), clock, dayOf }) },
    sessions: assembleSessionRoutes(core, options, parts, { clients, heartbeatMs }),
    receipts: { service: receipts, keyAccess: access.keys.keyAccess },
    schedules,
    webhooks: features.webhooks.webhooks,
    connectors,
    nodes: nodes.routes,
    peer: nodes.peer,
    embedded: embeddedNode,
    audit,
    draining,
  })
}

function assembleSessionRoutes(
  { clock, newId }: Core,
  { sandboxes = noSandboxes, turnTimeoutMs = 120_000, peer }: RuntimeOptions,
  { features: { agents, sessions }, nodes, work }: AppParts,
  streams: Pick<AppDeps['sessions'], 'clients' | 'heartbeatMs'>,
): AppDeps['sessions'] {
  return {
    ...streams,
    store: nodes.sessions,
    live: sessions.live,
    now: clock.now,
    service: sessionService({
      store: nodes.sessions,
      live: sessions.live,
      runs: work.service,
      turnRuns: work.runs,
      summary: work.runs.summary,
      newId,
      findVersion: agents.findVersion,
      now: clock.now,
      machines: sessionMachinesOf(sandboxes, peer?.siblings !== undefined),
      currentByName: agents.currentByName,
      holdSession: (tenantId, version) => nodes.holdSession(work.runs, tenantId, version),
      turnTimeoutMs,
    }),
  }
}

/** A store that does not answer must not take the page with it: those who look after it read it then. */
const LONGEST_LOOK_MS = 2000

/** What /metrics looks up when it is asked. */
function refreshGauges({ db, metrics, clock }: Core, { replica, host }: RuntimeOptions): () => Promise<void> {
  const storeUp = metrics.gauge('waybill_store_up', '1 where the store answered this page.')
  const approvalsPending = metrics.gauge('waybill_approvals_pending', 'Decisions that runs wait for.')
  const runsOpen = metrics.gauge('waybill_runs_open', 'Runs that have not ended, by status.')
  const queueAge = metrics.gauge('waybill_queue_age_seconds', 'Age of the oldest run that is queued; 0: none is.')
  const onHost = host && hostMetrics(metrics, 'waybill', host)
  const lag =
    replica &&
    metrics.gauge('waybill_replica_lag_seconds', 'How much older the newest run of the replica is than the newest one.')
  const { openWork } = overviewStore(db)
  const lagSeconds = async () => (replica ? (await replicaLag(db, replica)).ms / 1000 : undefined)
  return async () => {
    const [found, behind] = await Promise.all([inTime(openWork()), inTime(lagSeconds()), onHost?.()])
    const of = (what: string) => found?.find(one => one.what === what)
    const held = (what: string) => (found ? (of(what)?.held ?? 0) : Number.NaN)
    storeUp.set(found ? 1 : 0)
    approvalsPending.set(held('approvals'))
    for (const status of ['queued', 'running', 'waiting']) runsOpen.set(held(status), { status })
    const nowMs = clock.now().getTime()
    queueAge.set(found ? Math.max(0, nowMs - (of('queued')?.oldestMs ?? nowMs)) / 1000 : Number.NaN)
    lag?.set(behind !== undefined && Number.isFinite(behind) ? behind : Number.NaN)
  }
}

/** Undefined where it fails or takes too long. */
async function inTime<T>(figure: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, LONGEST_LOOK_MS, undefined)
  })
  const found = await Promise.race([figure.catch(() => undefined), late])
  clearTimeout(timer)
  return found
}
