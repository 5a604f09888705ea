import { OutboundDenied } from '../shared/http/outbound/bounded-body.ts'
import { agentStore } from './agents/store.ts'
import type { Execution } from './assemble-execution.ts'
import { auditLog } from './audit-log/log.ts'
import { access } from './auth/access.ts'
import { assembleBudgets } from './budgets/assemble.ts'
import { priceChecks } from './budgets/price-checks.ts'
import { keptBudget } from './budgets/store.ts'
import { assembleConnectors, CONNECTOR_HOLDINGS } from './connectors/assemble.ts'
import type { Core } from './core.ts'
import { lastingValue } from './lasting-value.ts'
import type { Nodes } from './nodes/assemble.ts'
import { hashedFacts } from './nodes/runs/remote-run.ts'
import { textsOpener } from './nodes/sealed-payloads.ts'
import type { RuntimeOptions } from './options.ts'
import { assembleProviders, PROVIDER_HOLDINGS } from './providers/assemble.ts'
import { assembleReceipts } from './receipts/assemble.ts'
import { endRuns } from './runs/end-runs.ts'
import { SCHEDULE_HOLDINGS } from './schedules/assemble.ts'
import { disableSchedules } from './schedules/store.ts'
import { assembleSessions } from './sessions/assemble.ts'
import { stopSessions } from './sessions/store.ts'
import { assembleTracing, traceparentOf } from './telemetry/telemetry.ts'
import { ACCESS_HOLDINGS } from './tenants/store.ts'
import { assembleWebhooks, WEBHOOK_HOLDINGS } from './webhooks/assemble.ts'
import { runEvents } from './webhooks/run-events.ts'

/** What is assembled after these features and asked by them later: where runs are executed. */
export interface Later {
  nodes: () => Nodes
  work: () => Execution
}

export type Features = ReturnType<typeof assembleFeatures>

/** The features that need no more than the store and each other; what executes runs is built on them. */
export function assembleFeatures(core: Core, options: RuntimeOptions, { nodes, work }: Later) {
  const { db, log, clock, metrics, newId, records, sha256 } = core
  const { worker } = options
  const audit = auditLog({ db, now: clock.now, newId, sha256 })
  const agents = agentStore(db, {
    now: clock.now,
    newId,
    sealTexts: (...of) => nodes().sealTexts(...of),
    openTexts: worker && textsOpener(worker.poolKeys),
    creating: keptBudget,
    deleting: [(agent, nowMs) => nodes().deleting(agent, nowMs), endRuns, disableSchedules, stopSessions],
    deleted: () => work().engine.wake(),
  })
  const provided = assembleProviders({
    ...core,
    routerFetch: options.routerFetch,
    demo: options.demo,
    environment: options.providers,
    deadlines: options.providerDeadlines,
    answerBytesAtATime: options.answerBytesAtATime,
    traceparent: options.telemetry && (key => traceparentOf(key, sha256)),
  })
  const { models = provided.models } = options
  const budgets = assembleBudgets({ ...core, models, now: clock.now, log: log.target('runtime.budgets') })
  return {
    audit,
    agents,
    provided,
    models,
    budgets,
    access: assembleAccess(core, options),
    prices: priceChecks({ ...budgets, agents }),
    runEvents: runEvents(newId),
    sessions: assembleSessions(
      db,
      records,
      ({ event, data }) => {
        if (event === 'message_delta') worker?.said(data)
      },
      session => nodes().wanted?.(session),
    ),
    connectors: assembleConnectors({
      ...core,
      audit,
      oauthClients: options.oauthClients,
      oauthHomes: options.oauthHomes,
    }),
    receipts: assembleReceipts({
      ...core,
      seed: options.receiptSeed,
      versionOf: agents.getVersion,
      runOf: id => work().runs.summary(id),
      async remoteRun(id) {
        const remote = nodes().engaged() ? await nodes().remote.get(id) : undefined
        return remote && (remote.headKnown ? hashedFacts(remote) : 'unknown')
      },
      log: log.target('runtime.receipts'),
    }),
    webhooks: assembleWebhooks({ ...core, log: log.target('runtime.webhooks') }),
    traces:
      options.telemetry &&
      assembleTracing({ ...options.telemetry, metrics, sha256, log: log.target('runtime.telemetry') }),
    ownNode: worker ? async () => worker.nodeId : lastingValue(db, 'embedded_node', newId),
    outboundFetch: core.egress?.fetch ?? (() => Promise.reject(new OutboundDenied('this host has no way out'))),
  }
}

function assembleAccess(core: Core, { bootstrapKey, scrypt, loginTries }: RuntimeOptions) {
  return access({
    ...core,
    log: core.log.target('runtime.access'),
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
    scrypt,
    loginTries,
  })
}
