import { create } from '@bufbuild/protobuf'
import { readJson } from '../../../shared/json/read-json.ts'
import { fromBase64, fromHex } from '../../../shared/sign/bytes.ts'
import type { Signer } from '../../../shared/sign/ed25519.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import { type Complete, CompleteSchema, type NodeFrame, NodeFrameSchema } from '../../../shared/tunnel/gateway.gen.ts'
import type { OutboxRow } from '../../../shared/tunnel/outbox.ts'
import { completeMessage } from '../../../shared/tunnel/protocol.ts'
import type { Receipt } from '../../../shared/wire/runtime/receipt.ts'
import type { receipts, runData, runs } from '../../schema/tables.ts'
import { openMaybe, type Records } from '../../vault/records.ts'
import type { Report } from './report-rows.ts'

export interface WorkerReportsDeps {
  db: Db
  sha256: Sha256
  records: Records
  signer: Signer
  /** Which rows of a shared outbox are this node's. */
  reportsAs: string | null
}

/** A run that has ended, with the epoch of the order that it came by. */
type EndedRun = RowOf<typeof runs> & { told_epoch: number; finished_ms: number; head: string; event_count: number }

/** What a node has to tell its control plane, as frames. */
export function workerReports(deps: WorkerReportsDeps) {
  const { db, reportsAs } = deps

  return {
    /** What the control plane has not been told, oldest first. */
    async pendingReports(afterId: number, most: number): Promise<OutboxRow<NodeFrame>[]> {
      const found = await db.execute({
        sql: `select o.id, o.frame, t.epoch from tunnel_outbox o left join tunnel_runs t on t.run_id = o.frame ->> 'run'
          where o.id > ? and o.node_id is ? order by o.id limit ?`,
        args: [afterId, reportsAs, most],
      })
      const made: OutboxRow<NodeFrame>[] = []
      for (const row of rowsOf<{ id: number; frame: string; epoch: number | null }>(found)) {
        const frame = await frameOf(deps, readJson(row.frame) as Report, row.epoch ?? 0)
        // A run that was deleted meanwhile has nothing left to tell; its place is taken by a word of no meaning.
        const ackOnly = { body: { case: 'ackOnly' as const, value: {} } }
        made.push({ id: row.id, frame: frame ?? create(NodeFrameSchema, ackOnly) })
      }
      return made
    },

    async acknowledged(upToId: number): Promise<void> {
      await db.execute({ sql: 'delete from tunnel_outbox where id <= ? and node_id is ?', args: [upToId, reportsAs] })
    },
  }
}

async function frameOf(deps: WorkerReportsDeps, report: Report, epoch: number): Promise<NodeFrame | undefined> {
  switch (report.t) {
    case 'event': {
      const value = {
        runId: report.run,
        epoch: BigInt(epoch),
        eventSeq: BigInt(report.seq),
        kind: report.kind,
        stepId: report.step,
        attempt: report.attempt,
        at: report.at,
        hash: fromHex(report.hash),
        model: report.model,
        tokensIn: BigInt(report.in),
        tokensOut: BigInt(report.out),
        costNanoUsd: BigInt(report.nano),
        unpriced: report.unpriced === true,
        cut: report.cut === true,
      }
      return create(NodeFrameSchema, { body: { case: 'event', value } })
    }
    case 'accept': {
      const { run: runId, ok, reason } = report
      const value = { runId, epoch: BigInt(report.epoch ?? epoch), ok, reason: reason.slice(0, 500) }
      return create(NodeFrameSchema, { body: { case: 'accept', value } })
    }
    case 'ask': {
      const { run: runId, step: stepId, id: approvalId, reason, expires } = report
      const value = { runId, stepId, approvalId, reason, expiresUnix: BigInt(Math.ceil(expires / 1000)) }
      return create(NodeFrameSchema, { body: { case: 'approval', value } })
    }
    case 'takeover': {
      const value = { runId: report.run, epoch: BigInt(epoch) }
      return create(NodeFrameSchema, { body: { case: 'takeover', value } })
    }
    case 'parked': {
      const untilUnixMs = BigInt(report.until ?? 0)
      const value = { runId: report.run, epoch: BigInt(epoch), reason: report.reason, untilUnixMs }
      return create(NodeFrameSchema, { body: { case: 'parked', value } })
    }
    case 'child': {
      const { run: runId, child: childId, agent: agentName, box, hash, length } = report
      const value = {
        runId,
        epoch: BigInt(epoch),
        childId,
        agentName,
        inputSealed: fromBase64(box),
        inputHash: fromHex(hash),
        inputLength: BigInt(length),
      }
      return create(NodeFrameSchema, { body: { case: 'childAsk', value } })
    }
    case 'credential': {
      const value = { ref: report.ref, ok: report.error === '', error: report.error.slice(0, 500) }
      return create(NodeFrameSchema, { body: { case: 'secretAck', value } })
    }
    case 'complete': {
      const value = await completeOf(deps, report.run)
      return value && create(NodeFrameSchema, { body: { case: 'complete', value } })
    }
  }
}

/** A run's end as it is reported: the receipt that this node signed for it has the hashes. */
async function completeOf(deps: WorkerReportsDeps, runId: string): Promise<Omit<Complete, '$typeName'> | undefined> {
  const [found, data, issued] = await deps.db.read([
    {
      sql: `select r.*, t.epoch as told_epoch from runs r join tunnel_runs t on t.run_id = r.id
        where r.id = ? and r.finished_ms is not null`,
      args: [runId],
    },
    { sql: 'select input, output from run_data where run_id = ?', args: [runId] },
    { sql: 'select envelope from receipts where run_id = ?', args: [runId] },
  ])
  const [row] = rowsOf<EndedRun>(found!)
  const [stored] = rowsOf<Pick<RowOf<typeof runData>, 'input' | 'output'>>(data!)
  if (!row || !stored) return undefined
  const [receipt] = rowsOf<Pick<RowOf<typeof receipts>, 'envelope'>>(issued!)
  const signed = receipt && (readJson(receipt.envelope) as Receipt).payload
  const models = signed?.models ?? []
  const hash = (field: 'input' | 'output') => {
    const text = openMaybe(deps.records, stored[field], { record: runId, field })
    return fromHex(sha256Hex(text ?? '{}', deps.sha256))
  }
  const told: Omit<Complete, '$typeName'> = {
    runId,
    epoch: BigInt(row.told_epoch),
    status: row.status,
    errorCode: row.error_code ?? '',
    errorStep: row.error_step ?? '',
    head: fromHex(row.head),
    eventCount: BigInt(row.event_count),
    // What it was given may be dropped by now.
    inputHash: stored.input === '' && signed ? fromHex(signed.inputHash) : hash('input'),
    outputHash: hash('output'),
    models,
    tokensIn: BigInt(row.tokens_in),
    tokensOut: BigInt(row.tokens_out),
    costNanoUsd: BigInt(row.cost_nano),
    isolation: row.isolation_used ?? row.isolation,
    finishedUnixMs: BigInt(row.finished_ms),
    nodeSignature: new Uint8Array(),
  }
  return { ...told, nodeSignature: await deps.signer.sign(completeMessage(create(CompleteSchema, told))) }
}
