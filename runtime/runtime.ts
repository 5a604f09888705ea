import { changeFeed } from '../shared/http/change-feed.ts'
import { inFlight } from '../shared/http/in-flight.ts'
import { migrate } from '../shared/sql/migrate.ts'
import type { Readyz } from '../shared/wire/runtime/health.ts'
import { assembleApp } from './assemble-app.ts'
import type { Execution } from './assemble-execution.ts'
import { assembleFeatures, type Features } from './assemble-features.ts'
import { assembleRemote, assembleWork } from './assemble-work.ts'
import { type Core, createCore } from './core.ts'
import { markStore } from './dashboard/store.ts'
import { engineLimits } from './execution/engine-deps.ts'
import { readinessOf } from './health/readiness.ts'
import type { Nodes } from './nodes/assemble.ts'
import type { BudgetRequests } from './nodes/worker/budget-requests.ts'
import type { Learnt, Runtime, RuntimeOptions } from './options.ts'
import { checkProvider } from './providers/check-provider.ts'
import { retention } from './retention/sweep.ts'
import { runIndex } from './runs/search/run-index.ts'
import { assembleSchedules } from './schedules/assemble.ts'
import { runtimeSteps } from './schema/steps.ts'
import { masterKeyLease } from './vault/key-leases.ts'
import { enqueueRefusedWindow } from './webhooks/enqueue.ts'

export type { Learnt, Runtime, RuntimeOptions }

/** Assembles the features over a store, in the order in which they build on each other, and gives them one life. */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { learnt, embeddedNode: embedded = true, timers = true } = options
  const { core, keys } = createCore(options)
  const owner = options.owner ?? core.newId()
  let started: Promise<Learnt> | undefined
  let phase: Readyz['status'] = 'starting'
  let nodeId = ''

  const features: Features = assembleFeatures(core, options, { nodes: () => nodes, work: () => work })
  const nodes: Nodes = assembleRemote(core, options, features, { work: () => work })
  const { asks, ...work } = assembleWork(core, options, features, { nodes, nodeId: () => nodeId, owner })
  const timed = timedWork(core, options, features, nodes, work)
  const { webhookDelivery } = features.webhooks
  const holding = keyLease(core, options, owner)
  const live = changeFeed(markStore(core.db), { again: { afterMs: 3000, everyMs: 60_000 } })
  const index = runIndex({ db: core.db, clock: core.clock, log: core.log.target('runtime.search') })
  const calls = inFlight()
  const app = assembleApp(core, options, {
    features,
    nodes,
    work,
    schedules: timed.schedules,
    live,
    index,
    readiness: readinessOf({ db: core.db, ready, checkKey: keys.check, phase: () => phase }),
    draining: () => phase === 'draining',
  })

  async function ready(): Promise<void> {
    started ??= begin()
    await started
  }

  async function begin(): Promise<Learnt> {
    const known = learnt ?? (await learn(core, holding, keys, features))
    keys.use(known.records)
    nodeId = known.nodeId
    if (!learnt) await features.audit.recover()
    await nodes.start({ timers })
    if (embedded && options.worker?.mayExecute) void startLater(options.worker.mayExecute)
    else if (embedded) await work.engine.start({ sweeps: timers })
    if (!learnt || timers) await timed.start({ timers })
    if (timers) webhookDelivery.start()
    if (timers) timed.keeping?.start()
    // A node is asked for no list.
    if (timers && !options.worker) index.start()
    if (phase === 'starting') phase = 'ready'
    return known
  }

  /** A sweep says itself what fails in it. */
  async function startLater(when: Promise<void>): Promise<void> {
    await when
    if (phase !== 'draining') await work.engine.start()
  }

  return {
    fetch: (request, connection = {}) => calls.track(Promise.resolve(app.fetch(request, connection))),
    ready,
    learnt: () => (started ??= begin()),
    principalOf: features.access.principalOf,
    setupToken: features.access.setupToken,
    nodes: { gateway: nodes.gateway, whenWanted: nodes.whenWanted, listening: nodes.listening },
    worker: asks && workerOf(core, options, features, work, asks),
    async scheduled() {
      await ready()
      await holding?.take()
      await nodes.sweep()
      await timed.fireDue()
      if (embedded) work.engine.wake()
      await webhookDelivery.once()
      await timed.keeping?.once()
      await index.once()
    },
    wake() {
      if (embedded && phase !== 'starting') work.engine.wake()
    },
    advance: ms => work.engine.idle(ms),
    busy: () => work.engine.busy,
    drain(why = 'stop') {
      if (why === 'stop') phase = 'draining'
      void timed.stop()
      work.engine.drain()
    },
    settled: ms => work.engine.settled(ms),
    async close(ms = 0) {
      phase = 'draining'
      live.close()
      await started?.catch(() => undefined)
      await timed.stop()
      await nodes.close()
      // What was taken before the service was told to stop is answered before its writers close.
      await Promise.all([
        work.engine.close(ms),
        webhookDelivery.stop(ms),
        calls.settled(ms),
        timed.keeping?.close(),
        index.close(),
      ])
      await work.engine.close(ms)
      features.sessions.live.close()
      await closeWriters(work.runs, features)
      await holding?.stop()
    },
  }
}

/** What a start reads of the store, unless another process has read it for this one. */
async function learn(
  { db, serverClock }: Core,
  holding: ReturnType<typeof keyLease>,
  keys: ReturnType<typeof createCore>['keys'],
  features: Features,
): Promise<Learnt> {
  await migrate(db, 'runtime', runtimeSteps)
  await holding?.take()
  return { records: await keys.open(), nodeId: await features.ownNode(), serverClock }
}

async function closeWriters(runs: Execution['runs'], { budgets, traces, access }: Features): Promise<void> {
  await runs.close()
  await budgets.spending.close()
  await traces?.close()
  await access.close()
}

/**
 * Held while a process uses the master key, so that it is not rotated under it. On a server also without a key: the leases tell
 * how many processes write there.
 */
function keyLease({ db, clock, serverClock, log }: Core, options: RuntimeOptions, owner: string) {
  if (options.masterKey === undefined && db.kind !== 'remote') return undefined
  return masterKeyLease({
    db,
    clock,
    serverClock,
    owner,
    isGone: options.isGone,
    timers: options.timers ?? true,
    leaseMs: { ...engineLimits, ...options.limits }.leaseMs,
    log: log.target('runtime.vault'),
  })
}

/** What the clock starts: schedules, and the deletion of what has been kept long enough. */
function timedWork(
  core: Core,
  options: RuntimeOptions,
  { agents, budgets }: Features,
  nodes: Nodes,
  { runs, service }: Execution,
) {
  const { db, clock, newId, log } = core
  const schedules = assembleSchedules({
    ...core,
    runs,
    service,
    findAgent: agents.currentByName,
    admits: budgets.ledger.offer,
    sealInput: nodes.sealInput,
    refused: (refused, nowMs) => [enqueueRefusedWindow(newId, refused, nowMs)],
    log: log.target('runtime.schedules'),
  })
  // A node deletes what its control plane tells it to.
  if (options.worker) return { ...schedules, keeping: undefined }
  const days = options.retentionDays ?? 0
  const keeping = retention({ db, clock, runs, sessions: nodes.sessions, days, log: log.target('runtime.retention') })
  return { ...schedules, keeping }
}

/** The side of a node, on a process that is one. */
function workerOf(
  { db, sha256, clock, log, dayOf, records }: Core,
  { worker, copiedBytesAtMost }: RuntimeOptions,
  { sessions, provided, connectors }: Features,
  { own, engine, approvals, ownRequests }: Execution,
  asks: BudgetRequests,
) {
  const { directory, settings, egress } = provided.providers
  return worker?.make(worker, {
    db,
    sha256,
    records,
    runs: own,
    engine,
    approvals,
    requests: ownRequests,
    sessions: sessions.store,
    asks,
    now: clock.now,
    log: log.target('runtime.worker'),
    copiedBytesAtMost,
    dayOf,
    keeping: {
      secrets: provided.secrets,
      providers: directory,
      modelSettings: (tenantId, given) => settings.put(tenantId, given, clock.now().getTime()),
      connectors: connectors.service,
      checkProvider: given => checkProvider(given, egress),
    },
  })
}
