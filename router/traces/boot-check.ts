import { readJson } from '../../shared/json/read-json.ts'
import { recordChainChecker, type Sealed } from '../../shared/sign/record-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { traces } from '../schema/tables.ts'

const PAGE = 1000

type Row = Pick<RowOf<typeof traces>, 'seq' | 'body'>

export interface TailBreak {
  tenant_id: string
  /** The place in the chain that fails. */
  seq: number
  reason: string
}

/** Re-derives what came after a tenant's last checkpoint, and compares the record that the checkpoint names. */
export async function checkTail(db: Db, tenant: string, sha256: Sha256): Promise<TailBreak | undefined> {
  const [head, prune] = [await lastOf(db, tenant, 'head'), await lastOf(db, tenant, 'prune')]
  // Whatever the later pruning kept starts behind it; before that, the head must still name its record.
  const start = head !== undefined && head.seq > (prune?.seq ?? -1) ? head : prune
  if (start !== undefined && start === head) {
    const answer = await db.execute({
      sql: 'select body from traces where tenant_id = ? and seq = ?',
      args: [tenant, head.seq],
    })
    const [row] = rowsOf<Pick<Row, 'body'>>(answer)
    const hash = row && parse(row.body)?.hash
    if (hash !== head.hash) return { tenant_id: tenant, seq: head.seq, reason: 'checkpoint_head' }
  }
  const checker = recordChainChecker(start && { ...start, prev_hash: '' }, sha256)
  const first = (start?.seq ?? -1) + 1
  for (let after = first - 1; ; ) {
    const answer = await db.execute({
      sql: 'select seq, body from traces where tenant_id = ? and seq > ? order by seq limit ?',
      args: [tenant, after, PAGE],
    })
    const page = rowsOf<Row>(answer)
    for (const row of page) {
      const record = parse(row.body)
      if (record === undefined) return { tenant_id: tenant, seq: first + checker.count, reason: 'parse' }
      const broken = checker.push(record)
      if (broken !== undefined) return { tenant_id: tenant, seq: first + broken.index, reason: broken.reason }
      after = row.seq
    }
    if (page.length < PAGE) return undefined
  }
}

async function lastOf(db: Db, tenant: string, kind: 'head' | 'prune') {
  const answer = await db.execute({
    sql: "select seq, case when json_valid(body) then body ->> 'hash' end as hash from checkpoints where tenant_id = ? and kind = ? order by ix desc limit 1",
    args: [tenant, kind],
  })
  const [row] = rowsOf<{ seq: number; hash: unknown }>(answer)
  return row && { seq: row.seq, hash: String(row.hash) }
}

function parse(body: string): Sealed | undefined {
  try {
    return readJson(body) as Sealed
  } catch {
    return undefined
  }
}
