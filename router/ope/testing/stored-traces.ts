import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { insertRows } from '../../../shared/sql/insert-rows.ts'
import type { TraceRecord, UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import { type ChainHead, sealedRun, traceText } from '../../traces/canonical-trace.ts'
import { insertBatch } from '../../traces/commit.ts'
import { rowOf } from '../../traces/trace-row.ts'

export interface ReportedTrace {
  trace: UnsealedTrace
  /** What was reported about it, if anything was. */
  failed?: boolean | undefined
}

const LEASE = { holder: 'test', epoch: 1 }
const BATCH = 500
const OUTCOME = {
  tenant_id: 'text',
  trace_id: 'text',
  route_fp: 'text',
  rung: 'integer',
  fails: 'integer',
  passes: 'integer',
} as const

/** Seals the traces into the chains of a store, as the writer would, with their outcomes. */
export async function storedTraces(db: Db, told: readonly ReportedTrace[]): Promise<void> {
  await db.execute(
    `insert into writer_lease (name, holder, epoch, expires_ms) values ('traces', 'test', 1, 0) on conflict do nothing`,
  )
  const byTenant = Map.groupBy(told, ({ trace }) => trace.tenant_id)
  for (const [tenant, list] of byTenant) {
    let head = await headOf(db, tenant)
    for (let at = 0; at < list.length; at += BATCH) head = await keepBatch(db, list.slice(at, at + BATCH), head)
  }
}

async function keepBatch(
  db: Db,
  lot: readonly ReportedTrace[],
  head: ChainHead | undefined,
): Promise<ChainHead | undefined> {
  const run = sealedRun(nativeSha256)
  let previous = head
  const rows = lot.map(({ trace }) => {
    const { seq, hash, at, bytes } = run.add(traceText(trace), previous)
    previous = { seq, hash }
    return { cells: rowOf(trace, seq), at, bytes }
  })
  await db.execute(insertBatch(rows, run.bytes(), LEASE))
  const outcomes = lot.flatMap(({ trace, failed }) => {
    const { tenant_id, trace_id, final } = trace
    const counts = { rung: final.served_rung, fails: Number(failed), passes: Number(!failed) }
    return failed === undefined ? [] : [{ tenant_id, trace_id, route_fp: 'fp', ...counts }]
  })
  if (outcomes.length > 0) await db.execute(insertRows('outcomes', OUTCOME).statement(outcomes))
  return previous
}

async function headOf(db: Db, tenant: string): Promise<ChainHead | undefined> {
  const answer = await db.execute({
    sql: 'select body from traces where tenant_id = ? order by seq desc limit 1',
    args: [tenant],
  })
  const [row] = rowsOf<{ body: string }>(answer)
  if (row === undefined) return undefined
  const { seq, hash } = JSON.parse(row.body) as TraceRecord
  return { seq, hash }
}
