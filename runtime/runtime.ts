import { inFlight } from '../shared/http/in-flight.ts'
import type { EgressClient } from '../shared/http/outbound/egress-client.ts'
import { OutboundDenied } from '../shared/http/outbound/outbound-denied.ts'
import { uuidv7 } from '../shared/ids/uuid-v7.ts'
import { silentLog } from '../shared/log/log.ts'
import { createMetrics } from '../shared/metrics/metrics.ts'
import { sha256 as portableSha256 } from '../shared/sign/sha256.ts'
import { migrate } from '../shared/sql/migrate.ts'
import { systemClock } from '../shared/time/clock.ts'
import { VERSION } from '../shared/version.ts'
import type { Readyz } from '../shared/wire/runtime/health.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import { EMBEDDED_POOL, POOL_LABEL } from './agents/pool-label.ts'
import { agentStore } from './agents/store.ts'
import { runtimeApp } from './app.ts'
import { assembleExecution } from './assemble-execution.ts'
import { egressAudit } from './audit-log/egress.ts'
import { auditLog } from './audit-log/log.ts'
import { auditedSecrets } from './audit-log/secret-use.ts'
import { access } from './auth/access.ts'
import { assembleBudgets } from './budgets/assemble.ts'
import { dayIn } from './budgets/day.ts'
import { priceChecks } from './budgets/price-checks.ts'
import { agentActions } from './connectors/agent-actions.ts'
import { assembleConnectors, CONNECTOR_HOLDINGS } from './connectors/assemble.ts'
import { liveFigures } from './dashboard/live.ts'
import { figureStore } from './dashboard/store.ts'
import { engineLimits } from './execution/engine-deps.ts'
import { StepFailure } from './execution/failure.ts'
import { noParts, type Unit } from './execution/journal/commit.ts'
import { pinStore } from './execution/mcp/pin-store.ts'
import { observers } from './execution/observer.ts'
import { noSandboxes } from './execution/sandbox/sandboxes.ts'
import type { Outbound } from './execution/tools/http-request-tool.ts'
import { toolOutbound } from './execution/tools/tool-outbound.ts'
import { readinessOf } from './health/readiness.ts'
import { replicaLag } from './health/replica-lag.ts'
import { streamClients } from './http/stream-clients.ts'
import { lastingValue } from './lasting-value.ts'
import { usageMetrics } from './metrics/usage-metrics.ts'
import { assembleNodes } from './nodes/assemble.ts'
import { hashedFacts } from './nodes/runs/remote-run.ts'
import { budgetRequests } from './nodes/worker/budget-requests.ts'
import { grantedModel } from './nodes/worker/granted-model.ts'
import { asideNews, reportRows } from './nodes/worker/report-rows.ts'
import { requestSubagents } from './nodes/worker/request-subagent.ts'
import { takeOverRuns } from './nodes/worker/take-over-runs.ts'
import type { Learnt, Runtime, RuntimeOptions } from './options.ts'
import { redactionOf } from './privacy/redaction.ts'
import { assembleProviders, PROVIDER_HOLDINGS } from './providers/assemble.ts'
import { checkProvider } from './providers/check-provider.ts'
import { assembleReceipts } from './receipts/assemble.ts'
import { retention } from './retention/sweep.ts'
import { endRuns } from './runs/end-runs.ts'
import { assembleSchedules, SCHEDULE_HOLDINGS } from './schedules/assemble.ts'
import { disableSchedules } from './schedules/store.ts'
import { scheduleZones } from './schedules/zones.ts'
import { runtimeSteps } from './schema/steps.ts'
import { manifestSecrets } from './secrets/manifest-check.ts'
import { assembleSessions } from './sessions/assemble.ts'
import { sessionService } from './sessions/service.ts'
import { sessionMachinesOf } from './sessions/session-vms.ts'
import { stopSessions } from './sessions/store.ts'
import { assembleTracing } from './telemetry/assemble.ts'
import { ACCESS_HOLDINGS } from './tenants/store.ts'
import { checkMasterKey } from './vault/canary.ts'
import { openDataKeys, refuseSealed } from './vault/data-keys.ts'
import { masterKey } from './vault/master-key.ts'
import { masterKeyLease } from './vault/master-key-lease.ts'
import { portableCipher } from './vault/portable-cipher.ts'
import { clearRecords, type Records, recordsLater, sealedRecords } from './vault/records.ts'
import { vault } from './vault/vault.ts'
import { assembleWebhooks, WEBHOOK_HOLDINGS } from './webhooks/assemble.ts'
import { enqueueRefusedWindow } from './webhooks/enqueue.ts'
import { runEvents } from './webhooks/run-events.ts'

export type { Learnt, Runtime, RuntimeOptions }

const DEFAULT_BODY_BYTES = 1_048_576

const noOutbound: Outbound = () =>
  Promise.reject(new StepFailure('egress_denied', 'this host has no way out for http_request'))

export function createRuntime(options: RuntimeOptions): Runtime {
  const { db, log = silentLog(), clock = systemClock, metricsAccess = { open: true } } = options
  const { bootstrapKey, publicUrl, scrypt, maxBodyBytes = DEFAULT_BODY_BYTES } = options
  const { metrics = createMetrics(), learnt } = options
  metrics.gauge('waybill_build_info', 'The running version.').set(1, { version: VERSION })
  let started: Promise<Learnt> | undefined
  let phase: Readyz['status'] = 'starting'
  const newId = () => uuidv7(clock.now().getTime())
  // A node seals credentials and nothing else: its store is where its runs are to be read.
  const sealKey = options.masterKey ?? options.worker?.sealKey
  const box = sealKey && masterKey(sealKey).then(key => vault(key))
  // A key of the wrong length is reported by the readiness check.
  box?.catch(() => undefined)

  async function ready(): Promise<void> {
    started ??= begin()
    await started
  }

  async function begin(): Promise<Learnt> {
    const { timers = true } = options
    if (!learnt) await migrate(db, 'runtime', runtimeSteps)
    if (!learnt) await holding?.take()
    const known = learnt ?? { records: await openRecords(), nodeId: await ownNode() }
    later.use(known.records)
    nodeId = known.nodeId
    if (!learnt) await audit.recover()
    await nodes.start({ timers })
    if (embedded) await work.engine.start({ sweeps: timers })
    if (!learnt || timers) await timed.start({ timers })
    if (timers) hooks.webhookDelivery.start()
    if (timers) keeping?.start()
    if (phase === 'starting') phase = 'ready'
    return known
  }

  async function openRecords(): Promise<Records> {
    if (box === undefined || options.masterKey === undefined) {
      await refuseSealed(db, 'give the master key it was sealed under')
      return clearRecords
    }
    return sealedRecords(options.cipher ?? portableCipher, await openDataKeys(db, await box, clock.now().getTime()))
  }

  const owner = options.owner ?? newId()
  const holding =
    options.masterKey &&
    masterKeyLease({
      db,
      clock,
      owner,
      isGone: options.isGone,
      timers: options.timers ?? true,
      leaseMs: { ...engineLimits, ...options.limits }.leaseMs,
      log: log.target('runtime.vault'),
    })

  const readiness = readinessOf({
    db,
    ready,
    checkKey: box && (async () => checkMasterKey(db, await box)),
    phase: () => phase,
  })
  const later = recordsLater()
  const { records } = later
  const parts = access({
    db,
    records,
    log: log.target('runtime.access'),
    clock,
    newId,
    holdings: [
      ...ACCESS_HOLDINGS,
      ...PROVIDER_HOLDINGS,
      ...SCHEDULE_HOLDINGS,
      ...WEBHOOK_HOLDINGS,
      ...CONNECTOR_HOLDINGS,
      { what: 'runs', rows: 'select 1 from runs where tenant_id = ?1' },
      { what: 'nodes', rows: 'select 1 from nodes where tenant_id = ?1' },
      { what: 'sessions', rows: 'select 1 from sessions where tenant_id = ?1' },
    ],
    bootstrapKey,
    publicUrl,
    scrypt,
    loginTries: options.loginTries,
  })
  const audit = auditLog({ db, now: clock.now, newId })
  const { embeddedNode: embedded = true } = options
  const agents = agentStore(db, {
    now: clock.now,
    newId,
    sealTexts: (...of) => nodes.sealTexts(...of),
    deleting: [(agent, nowMs) => nodes.deleting(agent, nowMs), endRuns, disableSchedules, stopSessions],
  })
  const sessions = assembleSessions(
    db,
    records,
    ({ event, data }) => {
      if (event === 'message_delta') options.worker?.said(data)
    },
    session => nodes.wanted?.(session),
  )
  const ownNode = options.worker ? async () => options.worker!.nodeId : lastingValue(db, 'embedded_node', newId)
  let nodeId = ''
  const { egress, routerFetch, demo, providers: environment, providerDeadlines: deadlines } = options
  const provided = assembleProviders({
    db,
    log,
    clock,
    newId,
    egress,
    routerFetch,
    demo,
    environment,
    deadlines,
    sealing: async () => box,
  })
  const { sha256 = portableSha256, models = provided.models } = options
  const { outbound = egress ? toolOutbound(egress) : noOutbound } = options
  const receipts = assembleReceipts({
    db,
    records,
    clock,
    metrics,
    sha256,
    sealing: async () => box,
    seed: options.receiptSeed,
    versionOf: agents.getVersion,
    runOf: id => work.runs.summary(id),
    async remoteRun(id) {
      const remote = nodes.engaged() ? await nodes.remote.get(id) : undefined
      return remote && (remote.headKnown ? hashedFacts(remote) : 'unknown')
    },
    log: log.target('runtime.receipts'),
  })
  const { sandboxes = noSandboxes } = options
  const zones = scheduleZones(options.defaultTimezone)
  const dayOf = dayIn(options.defaultTimezone ?? 'UTC')
  const budgets = assembleBudgets({
    db,
    metrics,
    models,
    dayOf,
    newId,
    now: clock.now,
    log: log.target('runtime.budgets'),
  })
  const prices = priceChecks({ ...budgets, agents })
  const connectors = assembleConnectors({
    db,
    log,
    clock,
    newId,
    egress,
    sealing: async () => box,
    audit,
    publicUrl,
    oauthClients: options.oauthClients,
    oauthHomes: options.oauthHomes,
  })
  const traces =
    options.telemetry &&
    assembleTracing({ ...options.telemetry, metrics, sha256, log: log.target('runtime.telemetry') })
  const clients = streamClients(metrics)
  const calls = inFlight()
  const approvalsPending = metrics.gauge('waybill_approvals_pending', 'Decisions that runs wait for.')
  const { replica } = options
  const lag =
    replica &&
    metrics.gauge('waybill_replica_lag_seconds', 'How much older the newest run of the replica is than the newest one.')
  const told = runEvents(newId)
  const ended = metrics.counter('waybill_remote_runs_total', 'Runs that ended on nodes elsewhere.')
  const nodes = assembleNodes({
    db,
    log,
    clock,
    metrics,
    sha256,
    newId,
    dayOf,
    maxBodyBytes,
    signRemoteRun: (run, end) => receipts.signRemoteRun(hashedFacts({ ...run, ...end })),
    enqueueStatusEvents: moved => told.extraStatements(moved.map(movedUnit)),
    watched: (runId, seq, terminal) => work.engine.watchers.moved(runId, seq, terminal),
    ended: status => ended.add(1, { status }),
    versionOf: agents.getVersion,
    assembleSessions: sessions,
    admit: budgets.ledger.admit,
    currentByName: agents.currentByName,
    grant: budgets.ledger.grant,
    labelsOf: async (tenantId, name) => (await agents.getByName(tenantId, name))?.labels ?? {},
    embedded: {
      on: embedded,
      id: ownNode,
      // What has been tried so far: the others count as soon as they are.
      get backends() {
        return sandboxes.known().map(({ backend }) => backend)
      },
    },
    times: options.tunnel,
    peer: peerOf(options),
    dispatchMs: options.dispatchTimeoutMs ?? 300_000,
    lostAfterMs: options.nodeLostAfterMs ?? 86_400_000,
  })
  const asks = options.worker && budgetRequests()
  const workerReportRows = options.worker && reportRows(options.worker.reportsAs)
  const tellAside = options.worker && asideNews(options.worker.reportsAs)
  const others = options.worker?.reportsAs ? takeOverRuns(options.worker.reportsAs, db) : undefined
  const work = assembleExecution({
    nodes,
    embedded,
    observer: observers([usageMetrics(metrics), budgets.spending, ...(traces ? [traces.observer] : [])], error => {
      log.error('what a run did could not be told', { error })
    }),
    db,
    records,
    clock,
    metrics,
    sha256,
    newId,
    models,
    outbound,
    agents,
    nodeId: () => nodeId,
    signReceipt: receipts.sign,
    ledger: asks
      ? { ...budgets.ledger, within: (run, model) => grantedModel(db, asks, run, budgets.ledger.within(run, model)) }
      : budgets.ledger,
    dayOf,
    turns: sessions.turns,
    log: log.target('runtime.engine'),
    owner,
    limits: { ...engineLimits, ...options.limits },
    ...(options.isGone && { isGone: options.isGone }),
    ...told,
    ...(workerReportRows && {
      extraStatements: units => [...told.extraStatements(units), ...workerReportRows(units)],
      kept: options.worker?.reportSoon,
    }),
    ...(tellAside && { extraWhenSetAside: ids => [...(others?.aside(ids) ?? []), tellAside(ids)] }),
    ...(others && { takenHere: others.claimed }),
    ...(options.worker && { childrenOf: own => requestSubagents(options.worker!, { db, runs: own, sha256 }) }),
    sandboxes,
    egressDecided: egressAudit(audit),
    secretOf: auditedSecrets(audit, provided.secrets.open),
    connectorsOf: agentActions({ service: connectors.service, useTool: budgets.useTool }),
    mcp: {
      fetch: egress?.fetch ?? noWayOut,
      pins: pinStore(db),
      grants: connectors.mcpGrants.service.port,
      stdioTransportOf: options.stdioTransportOf,
    },
  })
  const hooks = assembleWebhooks({
    db,
    clock,
    metrics,
    newId,
    egress,
    sealing: async () => box,
    log: log.target('runtime.webhooks'),
  })
  const timed = assembleSchedules({
    db,
    records,
    clock,
    metrics,
    newId,
    runs: work.runs,
    service: work.service,
    findAgent: agents.currentByName,
    wake: work.engine.wake,
    zones,
    admits: budgets.ledger.offer,
    dayOf,
    sealInput: nodes.sealInput,
    refused: (refused, nowMs) => [enqueueRefusedWindow(newId, refused, nowMs)],
    log: log.target('runtime.schedules'),
  })
  // A node deletes what its control plane tells it to.
  const keeping = options.worker
    ? undefined
    : retention({
        db,
        clock,
        runs: work.runs,
        sessions: nodes.sessions,
        days: options.retentionDays ?? 0,
        log: log.target('runtime.retention'),
      })

  const figures = figureStore(db)
  const live = liveFigures(figures)
  const app = runtimeApp({
    log: log.target('runtime.http'),
    maxBodyBytes,
    corsOrigins: options.corsOrigins ?? [],
    monotonic: clock.monotonic,
    metrics,
    access: metricsAccess,
    async refresh() {
      const { rows } = await db.execute("select count(*) from approvals where status = 'pending'")
      approvalsPending.set(Number(rows[0]?.[0]))
      if (!replica) return
      // A replica that is away, or has nothing, must not take the page with it.
      const { ms } = await replicaLag(db, replica).catch(() => ({ ms: Number.NaN }))
      lag?.set(Number.isFinite(ms) ? ms / 1000 : Number.NaN)
    },
    requestSeconds: metrics.histogram('waybill_http_request_duration_seconds', 'Time from request to answer.'),
    readiness,
    ...parts,
    pages: {
      users: parts.dashboard.users,
      figures,
      live,
      now: clock.now,
      maxBodyBytes,
      publicUrl,
      heartbeatMs: options.sseHeartbeatMs ?? 15_000,
      routerPanel: options.routerPanel,
    },
    agents: {
      agents,
      async installedConnectors(tenantId) {
        const here = await connectors.service.store.ids(tenantId)
        return new Set([...here, ...(await nodes.credentials.connectors(tenantId))])
      },
      backendsOf: nodes.backendsOf,
      unsealed: nodes.unsealed,
      checkPriced: prices.ofManifest,
      checkSecrets: manifestSecrets(async ({ tenantId, name, labels }, names) => {
        const { [POOL_LABEL]: pool } = labels ?? (await agents.getByName(tenantId, name))?.labels ?? {}
        const here = embedded && (pool === undefined || pool === EMBEDDED_POOL)
        return [
          ...(here ? [await provided.secrets.bindings(tenantId, names)] : []),
          ...(await nodes.credentials.bindings(tenantId, pool, names)),
        ]
      }),
    },
    runs: { runs: work.runs, service: work.service },
    journals: {
      clients,
      runs: work.runs,
      runWatchers: work.engine.watchers,
      sha256,
      heartbeatMs: options.sseHeartbeatMs ?? 15_000,
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
    providers: provided.providers,
    secrets: { secrets: provided.secrets },
    budgets: { db, ...budgets, prices, agents, dayOf, now: clock.now },
    sessions: {
      store: nodes.sessions,
      live: sessions.live,
      now: clock.now,
      service: sessionService({
        store: nodes.sessions,
        live: sessions.live,
        runs: work.service,
        summary: work.runs.summary,
        newId,
        findVersion: agents.findVersion,
        now: clock.now,
        machines: sessionMachinesOf(sandboxes),
        currentByName: agents.currentByName,
        placeOf: (tenantId, version) => nodes.holdSession(work.runs, tenantId, version),
        turnTimeoutMs: options.turnTimeoutMs ?? 120_000,
      }),
      heartbeatMs: options.sseHeartbeatMs ?? 15_000,
      clients,
      isElsewhere: nodes.isElsewhere,
    },
    receipts: { service: receipts, keyAccess: parts.keys.keyAccess },
    schedules: timed.schedules,
    webhooks: hooks.webhooks,
    connectors,
    nodes: nodes.routes,
    peer: nodes.peer,
    embedded,
    audit,
    draining: () => phase === 'draining',
  })

  return {
    fetch: (request, connection = {}) => calls.track(Promise.resolve(app.fetch(request, connection))),
    ready,
    learnt: () => (started ??= begin()),
    setupToken: parts.setupToken,
    nodes: { gateway: nodes.gateway, whenWanted: nodes.whenWanted, listening: nodes.listening },
    worker: options.worker?.make(options.worker, {
      db,
      sha256,
      runs: work.own,
      engine: work.engine,
      approvals: work.approvals,
      sessions: sessions.store,
      asks: asks!,
      now: clock.now,
      log: log.target('runtime.worker'),
      dayOf,
      keeping: {
        secrets: provided.secrets,
        providers: provided.providers.directory,
        connectors: connectors.service,
        checkProvider: given => checkProvider(given, provided.providers.egress),
      },
    }),
    async scheduled() {
      await ready()
      await holding?.take()
      await nodes.sweep()
      await timed.fireDue()
      if (embedded) work.engine.wake()
      await hooks.webhookDelivery.once()
      await keeping?.once()
    },
    advance: ms => work.engine.idle(ms),
    drain() {
      phase = 'draining'
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
      await Promise.all([work.engine.close(ms), hooks.webhookDelivery.stop(ms), calls.settled(ms), keeping?.close()])
      await work.engine.close(ms)
      sessions.live.close()
      await work.runs.close()
      await budgets.spending.close()
      await traces?.close()
      await parts.close()
      await holding?.stop()
    },
  }
}

function peerOf({ peer, masterKey: key }: RuntimeOptions) {
  if (peer === undefined) return undefined
  // Without it any caller could ask, so nothing starts.
  if (key === undefined) throw new TypeError('control planes know each other by the master key, and there is none')
  return { ...peer, masterKey: key }
}

const noWayOut: EgressClient['fetch'] = () => Promise.reject(new OutboundDenied('this host has no way out'))

/** A run that moved elsewhere, as the commits of this process tell of theirs. */
function movedUnit({
  runId,
  epoch,
  status,
  atMs,
}: {
  runId: string
  epoch: number
  status: string
  atMs: number
}): Unit {
  return {
    runId,
    epoch,
    atMs,
    ranMs: 0,
    events: [],
    blobs: [],
    approvals: [],
    extra: [],
    spent: { tokensIn: 0, tokensOut: 0, costNano: 0 },
    parts: noParts(),
    transition: { status: status as Run['status'], dueMs: null },
  }
}
