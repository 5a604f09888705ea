import { readJson } from '../../../shared/json/read-json.ts'
import type { RowOf } from '../../../shared/sql/db.ts'
import type { Isolation } from '../../../shared/wire/runtime/isolation.ts'
import type { Run, RunErrorCode } from '../../../shared/wire/runtime/run.ts'
import type { HashedFacts } from '../../receipts/payload.ts'
import type { remoteRuns, runs } from '../../schema/tables.ts'

/**
 * `queued`: waits for a node. `offered`: a node was told, and has not answered. `accepted`: it is that node's. `ending`: ended
 * here, and the node has still to seal its journal. `done`: nothing more comes.
 */
export type RemoteRunState = RowOf<typeof remoteRuns>['state']

/** A run that a node holds or will hold, as its control plane knows it. */
export interface RemoteRun {
  id: string
  tenantId: string
  agentId: string
  agentName: string
  versionId: string
  manifestHash: string
  status: Run['status']
  pool: string
  /** The only node that may take it. */
  pinned: string | undefined
  forkedFrom: { runId: string; stepId: string } | undefined
  parentRunId: string | undefined
  depth: number
  /** It is a turn of that session. */
  sessionId: string | undefined
  isolation: Isolation
  state: RemoteRunState
  nodeId: string | undefined
  epoch: number
  createdMs: number
  inputHash: string
  outputHash: string | undefined
  eventSeq: number
  /** The hash of the last event that was streamed, or the genesis. */
  tip: string
  headKnown: boolean
  models: readonly string[]
  isolationUsed: string | undefined
  spent: { tokensIn: number; tokensOut: number; costNano: number }
  finishedMs: number | undefined
  errorCode: RunErrorCode | undefined
  errorMessage: string | undefined
  node: { publicKey: string; signature: string } | undefined
}

/** What it takes to ask a node about a run. */
export type RunPlace = Pick<RemoteRun, 'id' | 'tenantId' | 'status' | 'nodeId' | 'state' | 'eventSeq'>

export const REMOTE_RUN_COLUMNS = `f.run_id, f.tenant_id, f.pool, f.pinned, f.isolation, f.state, f.node_id, f.epoch, f.created_ms, f.input_hash,
  f.output_hash, f.event_seq, f.tip, f.head_known, f.models, f.error_message, f.node_key, f.node_signature,
  r.agent_id, r.agent_name, r.version_id, r.status, r.tokens_in, r.tokens_out, r.cost_nano, r.finished_ms, r.error_code,
  r.isolation_used, r.forked_run, r.forked_step, r.session_id, r.parent_run_id, r.depth,
  (select manifest_hash from agent_versions where id = r.version_id) as manifest_hash`

type RemoteRunFields =
  | 'run_id'
  | 'tenant_id'
  | 'pool'
  | 'pinned'
  | 'isolation'
  | 'node_id'
  | 'epoch'
  | 'created_ms'
  | 'input_hash'
  | 'output_hash'
  | 'event_seq'
  | 'tip'
  | 'head_known'
  | 'models'
  | 'error_message'
  | 'state'
  | 'node_key'
  | 'node_signature'

type RunFields =
  | 'agent_id'
  | 'agent_name'
  | 'version_id'
  | 'status'
  | 'tokens_in'
  | 'tokens_out'
  | 'cost_nano'
  | 'finished_ms'
  | 'error_code'
  | 'isolation_used'
  | 'forked_run'
  | 'forked_step'
  | 'session_id'
  | 'parent_run_id'
  | 'depth'

export type StoredRemoteRun = Pick<RowOf<typeof remoteRuns>, RemoteRunFields> &
  Pick<RowOf<typeof runs>, RunFields> & { manifest_hash: string }

export function toRemoteRun(row: StoredRemoteRun): RemoteRun {
  return {
    id: row.run_id,
    tenantId: row.tenant_id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    versionId: row.version_id,
    manifestHash: row.manifest_hash,
    status: row.status,
    pool: row.pool,
    isolation: row.isolation,
    state: row.state,
    nodeId: row.node_id ?? undefined,
    epoch: row.epoch,
    createdMs: row.created_ms,
    inputHash: row.input_hash,
    outputHash: row.output_hash ?? undefined,
    eventSeq: row.event_seq,
    tip: row.tip,
    headKnown: row.head_known === 1,
    pinned: row.pinned ?? undefined,
    sessionId: row.session_id ?? undefined,
    parentRunId: row.parent_run_id ?? undefined,
    depth: row.depth,
    forkedFrom: row.forked_run === null ? undefined : { runId: row.forked_run, stepId: row.forked_step! },
    models: readJson(row.models) as string[],
    isolationUsed: row.isolation_used ?? undefined,
    spent: { tokensIn: row.tokens_in, tokensOut: row.tokens_out, costNano: row.cost_nano },
    finishedMs: row.finished_ms ?? undefined,
    errorCode: row.error_code ?? undefined,
    errorMessage: row.error_message ?? undefined,
    node: row.node_key === null ? undefined : { publicKey: row.node_key, signature: row.node_signature! },
  }
}

/** What a receipt says of a run on a node. */
export function hashedFacts(run: RemoteRun): HashedFacts {
  return {
    runId: run.id,
    tenantId: run.tenantId,
    agentName: run.agentName,
    agentVersionId: run.versionId,
    manifestHash: run.manifestHash,
    status: run.status as HashedFacts['status'],
    ...run.spent,
    inputHash: run.inputHash,
    outputHash: run.outputHash ?? '',
    models: run.models,
    isolation: run.isolationUsed ?? run.isolation,
    nodeId: run.nodeId ?? '',
    head: { seq: run.eventSeq, hash: run.tip },
    createdMs: run.createdMs,
    finishedMs: run.finishedMs ?? 0,
    ...(run.node && { node: run.node }),
  }
}
