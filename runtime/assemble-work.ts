import { toUsd } from '../shared/money/money.ts'
import { type Run, terminalStatuses } from '../shared/wire/runtime/run.ts'
import { assembleExecution, type Execution } from './assemble-execution.ts'
import type { Features, Later } from './assemble-features.ts'
import { auditedSecrets, egressAudit } from './audit-log/run-entries.ts'
import { agentActions } from './connectors/agent-actions.ts'
import type { Core } from './core.ts'
import { engineLimits, observers } from './execution/engine-deps.ts'
import { StepFailure } from './execution/failure.ts'
import { noParts, type Unit } from './execution/journal/commit.ts'
import { pinStore } from './execution/mcp/pin-store.ts'
import { noSandboxes } from './execution/sandbox/sandboxes.ts'
import { type Outbound, toolOutbound } from './execution/tools/http-request-tool.ts'
import { usageMetrics } from './metrics/usage-metrics.ts'
import { assembleNodes, type Nodes } from './nodes/assemble.ts'
import { hashedFacts } from './nodes/runs/remote-run.ts'
import { type WorkerExecution, workerExecution } from './nodes/worker/worker-execution.ts'
import type { RuntimeOptions } from './options.ts'
import { remoteRunEvents } from './webhooks/run-events.ts'

/** The nodes elsewhere, and their runs. */
export function assembleRemote(
  core: Core,
  options: RuntimeOptions,
  { agents, budgets, provided, receipts, runEvents, sessions, ownNode }: Features,
  { work }: Pick<Later, 'work'>,
): Nodes {
  const { sandboxes = noSandboxes, embeddedNode = true } = options
  const ended = core.metrics.counter(
    'waybill_remote_runs_total',
    'Runs that ended on nodes elsewhere, by status.',
    terminalStatuses.map(status => ({ status })),
  )
  const cost = core.metrics.counter(
    'waybill_remote_cost_usd_total',
    'What runs on nodes elsewhere have cost, in US dollars, as they ended.',
    [{}],
  )
  return assembleNodes({
    ...core,
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_BODY_BYTES,
    signRemoteRun: (run, end) => receipts.signRemoteRun(hashedFacts({ ...run, ...end })),
    enqueueStatusEvents: moved => runEvents.extraStatements(moved.map(movedUnit)),
    enqueueRemoteEvents: remoteRunEvents(core.newId),
    spent: budgets.spending.remote,
    watched: (runId, seq, terminal) => work().engine.watchers.moved(runId, seq, terminal),
    ended(status, costNano) {
      ended.add(1, { status })
      cost.add(toUsd(costNano))
    },
    versionOf: agents.getVersion,
    ownSessions: sessions,
    admit: budgets.ledger.admit,
    currentByName: agents.currentByName,
    grant: budgets.ledger.grant,
    useTool: budgets.useTool,
    modelSettings: provided.providers.settings.stored,
    labelsOf: async (tenantId, name) => (await agents.getByName(tenantId, name))?.labels ?? {},
    embedded: {
      on: embeddedNode,
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
}

export const DEFAULT_BODY_BYTES = 1_048_576

export interface WorkDeps {
  nodes: Nodes
  /** The id of the node in this process, once the store is ready. */
  nodeId: () => string
  owner: string
}

/** The engine of this process, and the runs wherever they are executed. */
export function assembleWork(
  core: Core,
  options: RuntimeOptions,
  features: Features,
  { nodes, nodeId, owner }: WorkDeps,
): Execution & Pick<WorkerExecution, 'asks'> {
  const { db, log, metrics, egress } = core
  const { agents, audit, budgets, connectors, models, provided, receipts, sessions, traces } = features
  const { embeddedNode: embedded = true, sandboxes = noSandboxes, worker } = options
  const { outbound = egress ? toolOutbound(egress) : noOutbound } = options
  const { asks, useTool, ...ofWorker } = workerExecution(core, worker, {
    budgets,
    runEvents: features.runEvents,
  })
  const work = assembleExecution({
    ...core,
    nodes,
    embedded,
    observer: observers([usageMetrics(metrics), budgets.spending, ...(traces ? [traces.observer] : [])], error => {
      log.error('what a run did could not be told', { error })
    }),
    models,
    outbound,
    agents,
    nodeId,
    signReceipt: receipts.sign,
    turns: sessions.turns,
    copiedBytesAtMost: options.copiedBytesAtMost,
    log: log.target('runtime.engine'),
    owner,
    limits: { ...engineLimits, ...options.limits },
    ...(options.isGone && { isGone: options.isGone }),
    ...ofWorker,
    sandboxes,
    egressDecided: egressAudit(audit),
    secretOf: auditedSecrets(audit, provided.secrets.open),
    connectorsOf: agentActions({ service: connectors.service, useTool }),
    mcp: {
      fetch: features.outboundFetch,
      pins: pinStore(db),
      grants: connectors.mcpGrants.service.port,
      stdioTransportOf: options.stdioTransportOf,
    },
  })
  return { ...work, asks }
}

const noOutbound: Outbound = () =>
  Promise.reject(new StepFailure('egress_denied', 'this host has no way out for http_request'))

function peerOf({ peer, masterKey: key }: RuntimeOptions) {
  if (peer === undefined) return undefined
  // Without it any caller could ask, so nothing starts.
  if (key === undefined) throw new TypeError('control planes know each other by the master key, and there is none')
  return { ...peer, masterKey: key }
}

interface Moved {
  runId: string
  epoch: number
  status: string
  atMs: number
}

/** A run that moved elsewhere, as the commits of this process tell of theirs. */
function movedUnit({ runId, epoch, status, atMs }: Moved): Unit {
  return {
    runId,
    epoch,
    seq: 0,
    after: { seq: 0, hash: '' },
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
