import type { Log } from '../../shared/log/log.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { ApprovalExpired } from './approvals.ts'
import type { EngineMetrics } from './engine-metrics.ts'
import type { BesideCommit } from './journal/unit.ts'
import type { Claimed } from './lease-store.ts'
import type { Models } from './models/model.ts'
import type { Outbound } from './tools/http-request-tool.ts'
import type { ChildRuns } from './tools/sub-agent-tool.ts'

export interface EngineLimits {
  maxConcurrent: number
  leaseMs: number
  recoveryMs: number
}

export const engineLimits: EngineLimits = { maxConcurrent: 16, leaseMs: 60_000, recoveryMs: 30_000 }

export interface EngineDeps {
  db: Db
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
  beside?: BesideCommit | undefined
  approvalExpired?: ApprovalExpired | undefined
}
