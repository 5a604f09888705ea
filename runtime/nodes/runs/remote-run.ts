import type { Row } from '@libsql/client/web'
import { readJson } from '../../../shared/json/read-json.ts'
import type { Isolation } from '../../../shared/wire/runtime/isolation.ts'
import type { Run, RunErrorCode } from '../../../shared/wire/runtime/run.ts'
import type { HashedFacts } from '../../receipts/payload.ts'

/**
 * `queued`: waits for a node. `offered`: a node was told, and has not answered. `accepted`: it is that node's. `ending`: ended
 * here, and the node has still to seal its journal. `done`: nothing more comes.
 */
export type RemoteRunState = 'queued' | 'offered' | 'accepted' | 'ending' | 'done'

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

export const REMOTE_RUN_COLUMNS = `f.run_id, f.tenant_id, f.pool, f.pinned, f.isolation, f.state, f.node_id, f.epoch, f.created_ms, f.input_hash,
  f.output_hash, f.event_seq, f.tip, f.head_known, f.models, f.error_message, f.node_key, f.node_signature,
  r.agent_id, r.agent_name, r.version_id, r.status, r.tokens_in, r.tokens_out, r.cost_nano, r.finished_ms, r.error_code,
  r.isolation_used, r.forked_run, r.forked_step, r.session_id, r.parent_run_id, r.depth,
  (select manifest_hash from agent_versions where id = r.version_id) as manifest_hash`

export function toRemoteRun(row: Row): RemoteRun {
  const text = (value: unknown) => (value === null ? undefined : String(value))
  return {
    id: String(row.run_id),
    tenantId: String(row.tenant_id),
    agentId: String(row.agent_id),
    agentName: String(row.agent_name),
    versionId: String(row.version_id),
    manifestHash: String(row.manifest_hash),
    status: String(row.status) as RemoteRun['status'],
    pool: String(row.pool),
    isolation: String(row.isolation) as Isolation,
    state: String(row.state) as RemoteRunState,
    nodeId: text(row.node_id),
    epoch: Number(row.epoch),
    createdMs: Number(row.created_ms),
    inputHash: String(row.input_hash),
    outputHash: text(row.output_hash),
    eventSeq: Number(row.event_seq),
    tip: String(row.tip),
    headKnown: Number(row.head_known) === 1,
    pinned: text(row.pinned),
    sessionId: text(row.session_id),
    parentRunId: text(row.parent_run_id),
    depth: Number(row.depth),
    forkedFrom:
      row.forked_run === null ? undefined : { runId: String(row.forked_run), stepId: String(row.forked_step) },
    models: readJson(String(row.models)) as string[],
    isolationUsed: text(row.isolation_used),
    spent: {
      tokensIn: Number(row.tokens_in),
      tokensOut: Number(row.tokens_out),
      costNano: Number(row.cost_nano),
    },
    finishedMs: row.finished_ms === null ? undefined : Number(row.finished_ms),
    errorCode: text(row.error_code) as RunErrorCode | undefined,
    errorMessage: text(row.error_message),
    node:
      row.node_key === null ? undefined : { publicKey: String(row.node_key), signature: String(row.node_signature) },
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
