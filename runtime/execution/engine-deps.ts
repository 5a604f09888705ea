import type { InStatement } from '@libsql/client/web'
import type { Log } from '../../shared/log/log.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { RunErrorCode } from '../../shared/wire/runtime/run.ts'
import type { SecretUse } from '../secrets/binding.ts'
import type { Records } from '../vault/records.ts'
import type { ApprovalExpired } from './approvals.ts'
import type { CallCost } from './call-cost.ts'
import type { EngineMetrics } from './engine-metrics.ts'
import type { ExtraStatements, Spent } from './journal/commit.ts'
import type { ChainHead, JournalEntry } from './journal/event.ts'
import type { Claimed, SetAsideStatements } from './lease-store.ts'
import type { McpDeps } from './mcp/deps.ts'
import type { FoundModel, Models } from './models/model.ts'
import type { EgressDecision, Sandboxes } from './sandbox/sandboxes.ts'
import type { ConnectorsOf } from './tools/connector-tool.ts'
import type { Outbound } from './tools/http-request-tool.ts'
import type { ChildRuns } from './tools/sub-agent-tool.ts'
import type { Turn } from './turn.ts'

export interface EngineLimits {
  maxConcurrent: number
  leaseMs: number
  recoveryMs: number
}

export const engineLimits: EngineLimits = { maxConcurrent: 64, leaseMs: 60_000, recoveryMs: 30_000 }

/** A run at its end, as its receipt tells it. */
export interface EndedRun {
  run: Claimed
  status: 'succeeded' | 'failed' | 'cancelled'
  /** Canonical text. */
  output: string
  error?: { code: RunErrorCode; message: string }
  head: ChainHead
  spent: Spent
  /** Calls of models that have no price: `spent` holds no cost of them. */
  unpricedCalls: number
  models: readonly string[]
  isolation: string
  finishedMs: number
}

/** Told what became durable of a run, by the process that did it: each entry and each end once, in order. */
export interface RunObserver {
  kept(run: Claimed, entries: readonly JournalEntry[]): void
  ended(ended: EndedRun): void
}

/** Signs what a run came to; undefined where there is nothing to sign with. */
export type SignReceipt = (ended: EndedRun) => Promise<string | undefined>

/** What the end of a run means elsewhere. */
export interface EndEffect {
  /** For the commit that ends the run; each holds its own condition on the run's epoch. */
  statements: InStatement[]
  /** The end is durable. */
  kept(): void
}

export interface EngineDeps {
  db: Db
  /** How run data is kept. */
  records: Records
  clock: Clock
  log: Log
  sha256: Sha256
  newId: () => string
  random: () => number
  /** Unique to this process. */
  owner: string
  /** Whether the owner of that name is certainly gone; a host that can tell says so, so that nothing waits for its lease. */
  isGone?: (owner: string) => boolean
  /** This node's id, known once the store is open. */
  nodeId: () => string
  limits: EngineLimits
  metrics: EngineMetrics
  models: Models
  /** The manifest of a version; it never changes. */
  manifestOf: (versionId: string) => Promise<Manifest>
  children: (parent: Claimed) => ChildRuns
  outbound: Outbound
  connectorsOf: ConnectorsOf
  sandboxes: Sandboxes
  /** Writes down what was decided about a call out of a run's sandbox, before it is made. */
  egressDecided: (run: Pick<Claimed, 'id' | 'tenantId'>, decision: EgressDecision) => Promise<void>
  mcp: Omit<McpDeps, 'secretOf'>
  /** A secret of the run's tenant, for one use; undefined when there is none of this name. A RunFailure where its binding does not allow the use. */
  secretOf: (run: Pick<Claimed, 'id' | 'tenantId'>, name: string, use: SecretUse) => Promise<string | undefined>
  signReceipt: SignReceipt
  /** What a run of a session is a turn of. */
  turnOf: (run: Claimed, sessionId: string, manifest: Manifest) => Promise<Turn>
  endEffect: (ended: EndedRun) => Promise<EndEffect | undefined>
  /** The model as the run's budget lets it be asked. */
  withinBudget: (run: Claimed, model: FoundModel) => FoundModel
  /** For the commit that ends a run whose open call cannot be accounted for here: what was held for it may have been billed. */
  lostCall: (run: Claimed, stepId: string) => InStatement[]
  /** Counts what a call has used of a run that another process ended, which knew of the call and not of that. */
  cutElsewhere: (runId: string, cost: CallCost) => Promise<void>
  /** The calendar day that usage is counted by. */
  dayOf: (ms: number) => string
  extraStatements?: ExtraStatements | undefined
  /** The same with the commit that sets runs aside. */
  extraWhenSetAside?: SetAsideStatements | undefined
  /** The same with what shows that a run waits for a rate limit. */
  extraWhenWaiting?: ((runId: string, untilMs: number) => InStatement[]) | undefined
  /** Looks on. */
  observer?: RunObserver | undefined
  /** Nodes with one store: any of them takes what is due, and hears of what it took before it does anything with it. */
  takenHere?: ((ids: readonly string[]) => Promise<void>) | undefined
  /** Called after commits of journals; cheap, as it may be called often. `soon`: a run has ended, or waits for a person. */
  kept?: ((soon: boolean) => void) | undefined
  approvalExpired?: ApprovalExpired | undefined
}

/** An observer may not hold up a run. */
export function observers(all: readonly RunObserver[], failed: (error: unknown) => void): RunObserver {
  const each = (tell: (one: RunObserver) => void) => {
    for (const one of all) {
      try {
        tell(one)
      } catch (error) {
        failed(error)
      }
    }
  }
  return {
    kept: (run, entries) => each(one => one.kept(run, entries)),
    ended: ended => each(one => one.ended(ended)),
  }
}
