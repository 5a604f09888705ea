import { uuidv7 } from '../shared/ids/uuid-v7.ts'
import { type Log, rateLimitedLog, silentLog } from '../shared/log/log.ts'
import { createMetrics } from '../shared/metrics/metrics.ts'
import { toUsd } from '../shared/money/money.ts'
import { type BuiltinPrices, loadBuiltinPrices } from '../shared/prices/builtin.ts'
import { utf8 } from '../shared/sign/bytes.ts'
import { sha256 as portableSha256 } from '../shared/sign/sha256.ts'
import { DamagedRowError } from '../shared/sql/db.ts'
import { forwardingDb } from '../shared/sql/forwarding-db.ts'
import { migrate } from '../shared/sql/migrate.ts'
import { systemClock } from '../shared/time/clock.ts'
import { pageTurn } from '../shared/time/sleep.ts'
import { VERSION } from '../shared/version.ts'
import type { RouterHealth, RouterReadiness } from '../shared/wire/router/health.ts'
import { type ActiveConfig, activate, type ConfigSource, configHolder } from './active-config.ts'
import { routerApp } from './app.ts'
import { auditReads, traceFinder } from './audit/reads.ts'
import { traceFeed } from './audit/tail.ts'
import { OPEN_ACCESS } from './auth/access.ts'
import { createCallers } from './auth/callers.ts'
import { savedLedger } from './budget/ledger.ts'
import { spentStore } from './budget/spent-store.ts'
import { answerCache } from './cache/answer-cache.ts'
import { reportsElsewhere } from './cache/reports-elsewhere.ts'
import { calibrationReads } from './calibrate/calibration-reads.ts'
import { cloudSigner } from './cloud/cloud-signer.ts'
import { findPrice } from './config/prices.ts'
import { droppedRungs, failureLines } from './enforce/call-log.ts'
import type { EnforceDeps } from './enforce/enforce.ts'
import { heldResponses } from './enforce/held-responses.ts'
import { sessions } from './enforce/sessions.ts'
import { keepFeedback } from './feedback/store-feedback.ts'
import { submitIfFound, submitToAnyShard } from './feedback/submit-feedback.ts'
import { createErrorBudgets, gateChanges } from './gates/error-budgets.ts'
import { gateProbes } from './gates/gate-probes.ts'
import { keepLearning } from './learning/save-learning.ts'
import { calibrationMetrics, liveMetrics, refusalMetrics } from './metrics/live-metrics.ts'
import type { RouterOptions } from './options.ts'
import { breakerLines, breakers } from './policy/breakers.ts'
import { bodyRoom, type CallDeps, createHandleCall } from './proxy/handle-call.ts'
import type { Hashing } from './receipt/request-part.ts'
import { keepReceipts, type Receipts } from './receipts.ts'
import { reloader } from './reload/reloader.ts'
import { routerSteps } from './schema/steps.ts'
import { keepShadows } from './shadow/shadows.ts'
import { promptSalt } from './traces/salt.ts'
import { fetchTransport } from './upstream/fetch-transport.ts'

export type Parts = Awaited<ReturnType<typeof assemble>>

interface Lifecycle {
  phase: () => RouterHealth['status']
  readiness: () => Promise<RouterReadiness>
}

/** Everything that a router is made of, for one process. */
export async function assemble(options: RouterOptions, life: Lifecycle) {
  const { db, log = silentLog(), clock = systemClock, transport = fetchTransport(), env = {}, others } = options
  const sha256 = options.sha256 ?? portableSha256
  const metrics = createMetrics()
  metrics.gauge('router_build_info', 'The running version.').set(1, { version: VERSION })
  if (db !== undefined) await migrate(db, 'router', routerSteps)
  const hashing: Hashing = { sha256, salt: await saltOf(options, log) }

  const prices = latePrices()
  const activateConfig = configReader(options, prices)
  const holder = configHolder(await activateConfig(options.config ?? ''), log)
  const calibrating = calibrationMetrics(metrics)

  const receipts: Receipts | undefined =
    db &&
    (await keepReceipts({
      db,
      receiptStorage: options.receiptStorage ?? { durable: false },
      clock,
      log,
      metrics,
      sha256,
      hashing,
      builtinPrices: prices.load,
      store: holder.get().config.store,
      settings: () => {
        const { pricing, configHash, priceTableHash } = holder.get().config
        return { pricing, hashes: { config_hash: configHash, price_table_hash: priceTableHash } }
      },
    }))
  const shards = others?.shards
  const { own, reads, findTrace, findOwn } = traceLookups({ db, receipts, others })
  const feed = db && traceFeed(db, shards?.answering)
  const written = db && receipts?.write ? forwardingDb(db, { write: receipts.write }) : db
  const answers: EnforceDeps['answers'] = answerCache({ monotonic: () => clock.monotonic() })
  const hearReports = db ? await reportsElsewhere({ db, clock, log, wrong: answers.retract }) : () => Promise.resolve()
  const settings = () => holder.get().config.calibration
  const feedback =
    db &&
    (await keepFeedback({
      db,
      clock,
      log,
      sha256,
      settings,
      find: async (id, tenant) => (await findOwn(id, tenant))?.trace,
      counted: result => {
        calibrating.counted(result)
        if (result.verdict === 'fail') answers.retract(result.trace_id)
      },
    }))
  await feedback?.routes.remember(holder.get().config)
  const calibration = calibrationReads(feedback, () => holder.get().config)
  const spent = written && spentStore(written)
  const budgets = savedLedger({ clock, log, store: spent })
  if (spent && !others) budgets.ledger.load(await spent.totals())
  const learning = await keepLearning({ db: written, log, sha256, secret: hashing.salt })
  const shadows = await keepShadows({
    db: written,
    clock,
    metrics,
    sha256,
    secret: hashing.salt,
    log: log.target('router.shadow'),
  })
  const errorBudgets = createErrorBudgets({
    budgetOf: id => holder.get().config.gates[id]?.errorBudget,
    clock,
    onChange: gateChanges(log.target('router.gates')),
  })
  const probed = metrics.counter('router_gate_probe_cost_usd_total', 'Spent on trying gates that were switched off.')
  const probes = gateProbes(errorBudgets, clock, (tenant, cost) => probed.add(toUsd(cost), { tenant }))
  const counts = refusalMetrics(metrics)
  const callLog = log.target('router.calls')
  const outHeaders = options.responseHeaders ?? true
  const { tenantId = 'default', access = OPEN_ACCESS } = options
  const held = heldResponses(clock.monotonic, sha256)
  const shared = {
    ledger: others?.budgets ?? budgets.ledger,
    breakers: breakers(clock, breakerLines(log.target('router.policy'), clock)),
    sessions: sessions(clock.monotonic),
    held: others?.held(held) ?? held,
    refusedSettings: new Map(),
    learner: learning.learner,
    shadows,
    answers,
    hearReports,
    calibrated: calibration.of,
    errorBudgets,
    probes,
    transport,
    clock,
    env,
    sha256,
    hashing,
    outHeaders,
    signer: cloudSigner({ transport, clock, env, host: options.credentialHost }),
    log: log.target('router.upstream'),
    callLog,
    failures: failureLines(log.target('router.upstream'), clock),
    ...counts,
    dropped: droppedRungs(metrics, log.target('router.policy')),
    record: receipts?.record ?? (async () => undefined),
    isTraced: options.receiptStorage?.collector !== undefined,
  }
  const maxBodyBytes = options.maxBodyBytes ?? holder.get().config.limits.maxBodyBytes
  const calls: CallDeps = {
    transport,
    bases: {
      messages: env.ROUTER_UPSTREAM_MESSAGES || 'https://api.anthropic.com',
      chat: env.ROUTER_UPSTREAM_CHAT || 'https://api.openai.com',
    },
    clock,
    newId: uuidv7,
    builtinPrices: prices.load,
    record: receipts?.observed,
    hashing,
    durable: options.receiptStorage?.durable ?? false,
    maxBodyBytes,
    outHeaders,
    log: log.target('router.http'),
    callLog,
    callers: createCallers({ access, tenantId, sha256 }),
    once: rateLimitedLog(clock),
    refuseWhenFull: counts.refuseWhenFull,
    room: options.room ?? bodyRoom(Number.POSITIVE_INFINITY),
    active: holder.get,
    enforcing: ({ config, gates }): EnforceDeps => ({
      ...shared,
      config,
      gates,
      priceOf: (provider, model) =>
        findPrice(config.pricing, prices.loaded(), {
          provider,
          dialect: config.providers[provider]?.dialect ?? 'chat',
          names: [model],
        }),
    }),
  }
  const activateKnown = async (source: ConfigSource) => {
    const next = await activateConfig(source)
    // Before its first receipt: feedback must find the route that a receipt means.
    await feedback?.routes.remember(next.config)
    return next
  }
  const reloadHere = reloader({ holder, activate: activateKnown, readConfig: options.readConfig, metrics, log })
  const reloadAll = async () => {
    const swapped = await reloadHere()
    await others?.reloaded()
    return swapped
  }
  const breakerOf = shared.breakers.phaseOf
  const { store } = holder.get().config
  const live = liveMetrics(metrics, {
    counted: receipts?.made,
    calibration: async () => calibrating.show(await calibration.figures()),
    providers: () => Object.keys(holder.get().config.providers),
    breakerOf,
    gates: () => Object.keys(holder.get().config.gates),
    isGateDisabled: gate =>
      errorBudgets.snapshot().some(({ gateId, state }) => gateId === gate && state === 'disabled'),
    host: options.host,
    inFlight: options.inFlight,
  })
  const submit = feedback && shards ? submitToAnyShard(feedback.submit, shards.submit) : feedback?.submit
  others?.answer({
    page: live.text,
    made: async () => receipts?.made(),
    reload: reloadHere,
    find: async id => receipts?.find(id),
    calibration: () => calibration.describe(undefined),
    submit: async report => feedback && submitIfFound(feedback.submit, report),
  })
  const app = routerApp({
    dashboard: options.dashboard ?? (() => undefined),
    traceFeed: feed,
    log: log.target('router.http'),
    guard: { access, tenantId, sha256 },
    metrics: others ? { text: async () => others.page(await live.text()) } : live,
    audit: {
      reads,
      keys: own && (() => (shards ? auditReads(...shards.answering()) : own).keys()),
      findTrace,
      calibration: async tenant => [
        ...(await calibration.describe(tenant)),
        ...((tenant === undefined && (await shards?.calibration())) || []),
      ],
      isGateDisabled: errorBudgets.isDisabled,
    },
    capabilities: {
      config: () => holder.get().config,
      env,
      hasSource: shared.signer.has,
      breakerOf,
      isGateDisabled: errorBudgets.isDisabled,
      calibration: calibration.describe,
      takesFeedback: feedback !== undefined,
      receipts: {
        durability: options.receiptStorage?.durable ? 'durable' : 'best_effort',
        key_id: options.receiptStorage?.signer?.keyId ?? null,
        checkpoint_every: store.checkpointRecords,
        checkpoint_seconds: store.checkpointSeconds,
      },
      authRequired: access.keys.length > 0,
    },
    submit,
    reload: others ? reloadAll : reloadHere,
    maxBodyBytes,
    outHeaders,
    ...life,
  })
  return {
    app,
    handleCall: createHandleCall(calls),
    receipts,
    feedback,
    reload: reloadHere,
    /** Pages that follow the traces come back to the next process. */
    drain: () => feed?.close(),
    async settled() {
      await probes.settled()
      await shadows.settled()
      await receipts?.kept?.()
      await learning.settled()
      await budgets.settled()
    },
    async close() {
      await probes.close()
      await shadows.close()
      // What is still on its way ends here, and has cost something and leaves a receipt.
      await transport.close()
      await pageTurn()
      await budgets.close()
      await learning.close()
      await feedback?.close()
      await receipts?.close()
      others?.last(await live.text().catch(() => metrics.text()))
    },
  }
}

const NO_PRICES: BuiltinPrices = { find: () => undefined }

/** The prices of the package, which are loaded when a config first names a model. */
function latePrices() {
  let loading: ReturnType<typeof loadBuiltinPrices> | undefined
  let loaded = NO_PRICES
  return {
    load: () =>
      (loading ??= loadBuiltinPrices().then(table => {
        loaded = table
        return table
      })),
    loaded: () => loaded,
  }
}

/** Reads a config as this host can run it. */
function configReader(
  { configFile, readFile, env = {}, gates = {} }: RouterOptions,
  prices: Pick<ReturnType<typeof latePrices>, 'load'>,
) {
  return async (source: ConfigSource): Promise<ActiveConfig> =>
    activate(source, {
      ...(configFile !== undefined && { file: configFile }),
      ...(readFile && { readFile }),
      env,
      // An empty config names no model, so nothing would be looked up.
      builtinPrices: source === '' ? NO_PRICES : await prices.load(),
      hostHasProcesses: gates.runProcess !== undefined,
      functions: Object.keys(gates.functions ?? {}),
      gateHost: gates,
    })
}

interface TraceLookupsDeps extends Pick<RouterOptions, 'db' | 'others'> {
  receipts: Receipts | undefined
}

/** Where traces are read: in this store and on their way to it, and in those of the other shards. */
function traceLookups({ db, receipts, others }: TraceLookupsDeps) {
  const shards = others?.shards
  const own = db && auditReads(db)
  // Who sees all tenants sees those of every shard.
  const reads =
    own && ((tenant: string | undefined) => (tenant === undefined && shards ? auditReads(...shards.stores()) : own))
  const made = async () => void (await Promise.all([receipts?.made(), others?.made()]))
  const findTrace = traceFinder({
    reads,
    pending: async (id, tenant) => (await receipts?.find(id, tenant)) ?? others?.find(id, tenant),
    made,
  })
  // A report goes to the store of its trace.
  const findOwn =
    own && shards
      ? traceFinder({ reads: () => own, pending: async (id, tenant) => receipts?.find(id, tenant), made })
      : findTrace
  return { own, reads, findTrace, findOwn }
}

/** The given one, else the one that this store was created with, else one that lives as long as this process. */
async function saltOf({ promptSalt: given, db }: RouterOptions, log: Log): Promise<Uint8Array> {
  if (given) return utf8(given)
  const ownSalt = () => crypto.getRandomValues(new Uint8Array(32))
  if (!db) return ownSalt()
  return promptSalt(db).catch((error: unknown) => {
    if (!(error instanceof DamagedRowError)) throw error
    log.error('until it is there again, prompts have other hashes than before', { error })
    return ownSalt()
  })
}
