import { ApiError } from '../shared/http/api-error.ts'
import type { Log } from '../shared/log/log.ts'
import type { Metrics } from '../shared/metrics/metrics.ts'
import type { Sha256 } from '../shared/sign/sha256.ts'
import type { Db } from '../shared/sql/db.ts'
import type { Clock } from '../shared/time/clock.ts'
import type { AgentStore } from './agents/store.ts'
import { type ApprovalStore, approvalStore } from './approvals/store.ts'
import type { DayOf } from './budgets/day.ts'
import type { Ledger } from './budgets/ledger.ts'
import { createEngine, type Engine } from './execution/engine.ts'
import type { EngineDeps, EngineLimits, SignReceipt } from './execution/engine-deps.ts'
import { engineMetrics } from './execution/engine-metrics.ts'
import { AGENT_DELETED } from './execution/failure.ts'
import type { Models } from './execution/models/model.ts'
import type { ConnectorsOf } from './execution/tools/connector-tool.ts'
import type { Outbound } from './execution/tools/http-request-tool.ts'
import type { Nodes } from './nodes/assemble.ts'
import type { PlacedRuns } from './nodes/runs/placed-runs.ts'
import { childRuns } from './runs/children.ts'
import { type RunService, runService } from './runs/service.ts'
import { type RequestsOfSteps, type StepRequestsDeps, stepRequests } from './runs/step-requests.ts'
import { type RunStore, runStore } from './runs/store.ts'
import type { Records } from './vault/records.ts'

export interface ExecutionDeps {
  db: Db
  records: Records
  log: Log
  clock: Clock
  metrics: Metrics
  sha256: Sha256
  newId: () => string
  nodeId: () => string
  owner: string
  isGone?: (owner: string) => boolean
  limits: EngineLimits
  models: Models
  outbound: Outbound
  connectorsOf: ConnectorsOf
  sandboxes: EngineDeps['sandboxes']
  secretOf: EngineDeps['secretOf']
  egressDecided: EngineDeps['egressDecided']
  mcp: EngineDeps['mcp']
  signReceipt: SignReceipt
  turns: Pick<EngineDeps, 'turnOf' | 'endEffect'> & Pick<StepRequestsDeps, 'turnAsItWas'>
  ledger: Pick<Ledger, 'admit' | 'within' | 'lostCall' | 'cutElsewhere'>
  dayOf: DayOf
  extraStatements?: EngineDeps['extraStatements']
  extraWhenSetAside?: EngineDeps['extraWhenSetAside']
  extraWhenWaiting?: EngineDeps['extraWhenWaiting']
  observer?: EngineDeps['observer']
  kept?: EngineDeps['kept']
  /** Where some runs are executed by nodes elsewhere. */
  nodes: Nodes
  /** False: nothing is executed in this process. */
  embedded: boolean
  takenHere?: EngineDeps['takenHere']
  /** On a node: how its runs come to the runs that they call. */
  childrenOf?: ((runs: RunStore) => EngineDeps['children']) | undefined
  approvalExpired?: EngineDeps['approvalExpired']
  agents: Pick<AgentStore, 'currentByName' | 'findVersion' | 'getVersion'>
  copiedBytesAtMost?: number | undefined
}

export interface Execution {
  engine: Engine
  /** The runs that are executed here. */
  own: RunStore
  runs: PlacedRuns
  service: RunService
  approvals: ApprovalStore
  /** Of the runs that are executed here, and of all of them. */
  ownRequests: RequestsOfSteps
  requests: RequestsOfSteps
}

/** The embedded node: the engine over the store of this process, and what the routes need of it. */
export function assembleExecution(deps: ExecutionDeps): Execution {
  const { db, records, clock, newId, sha256, agents, dayOf } = deps
  const { admit, within } = deps.ledger
  const own = runStore(db, records, { beside: () => engine.claimBeside(), wake: () => engine.wake() })
  const { nodes } = deps
  const runs = nodes.runs(own)
  /** A sub-agent runs where its parent does. */
  async function findChild(tenantId: string, name: string) {
    const found = await agents.currentByName(tenantId, name)
    if (found?.sealed === undefined) return found
    const message = `the prompt of agent ${name} is sealed to pool ${found.sealed.pool}, and its parent runs elsewhere`
    throw new ApiError('isolation_unavailable', message)
  }
  const cancel = (id: string, reason: string | undefined) =>
    engine.end(id, { code: 'cancelled', ...(reason !== undefined && { reason }) })
  const engine: Engine = createEngine({
    ...deps,
    ...deps.turns,
    random: Math.random,
    withinBudget: within,
    lostCall: deps.ledger.lostCall,
    cutElsewhere: deps.ledger.cutElsewhere,
    metrics: engineMetrics(deps.metrics),
    async manifestOf(versionId) {
      const version = await agents.getVersion(versionId)
      if (!version) throw new Error(`there is no agent version ${versionId}`)
      if (version.sealed) throw new Error(`agent version ${versionId} is readable on pool ${version.sealed.pool} only`)
      return version.manifest
    },
    children:
      deps.childrenOf?.(own) ??
      (parent => childRuns({ runs: own, cancel, admit, dayOf, findAgent: findChild, now: clock.now }, parent)),
  })
  if (!deps.embedded) engine.drain()
  const service = runService({
    runs: {
      ...runs,
      // What was just made or ended is known without a question.
      get: runs.near,
      async resume(id, nowMs) {
        if (!(await runs.remoteRunOf(id))) return own.resume(id, nowMs)
        await nodes.signal(id, { id: newId(), name: 'resume', value: 'null', atMs: nowMs })
      },
      signal: async (id, signal) => ((await runs.remoteRunOf(id)) ? nodes.signal(id, signal) : own.signal(id, signal)),
    },
    engine: {
      wake: engine.wake,
      async end(id, how) {
        if (!(await runs.remoteRunOf(id))) return engine.end(id, how)
        const { code } = how
        if (code === 'agent_deleted') return nodes.end(id, { status: 'failed', code, message: AGENT_DELETED })
        return nodes.end(id, { status: 'cancelled', ...('reason' in how && { reason: how.reason }) })
      },
    },
    admit,
    dayOf,
    newId,
    now: clock.now,
    copiedBytesAtMost: deps.copiedBytesAtMost,
    sha256,
    ...agents,
  })

  const ownRequests = stepRequests({
    db,
    records,
    sha256,
    runs: own,
    getVersion: agents.getVersion,
    turnAsItWas: deps.turns.turnAsItWas,
  })
  return {
    engine,
    own,
    runs,
    service,
    approvals: nodes.approvals(approvalStore(db, records), runs.remoteRunOf),
    ownRequests,
    requests: nodes.requests(ownRequests, runs.remoteRunOf),
  }
}
