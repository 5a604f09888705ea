import { recordChainChecker, type Sealed } from '../../shared/sign/record-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'

const PAGE = 1000

export interface TailBreak {
  tenant_id: string
  /** The place in the chain that fails. */
  seq: number
  reason: string
}

/** Re-derives what came after a tenant's last checkpoint, and compares the record that the checkpoint names. */
export async function checkTail(db: Db, tenant: string, sha256: Sha256): Promise<TailBreak | undefined> {
  const { rows } = await db.execute({
    sql: "select seq, body ->> 'hash' as hash from checkpoints where tenant_id = ? order by ix desc limit 1",
    args: [tenant],
  })
  const signed = rows[0]
  const from = signed === undefined ? -1 : Number(signed.seq)
  if (signed !== undefined) {
    const named = await db.execute({
      sql: "select body ->> 'hash' as hash from traces where tenant_id = ? and seq = ?",
      args: [tenant, from],
    })
    const later = await db.execute({
      sql: "select max(body ->> 'seq') as seq from checkpoints where tenant_id = ? and kind = 'prune'",
      args: [tenant],
    })
    const pruned = later.rows[0]?.seq === null ? -1 : Number(later.rows[0]?.seq)
    if (from > pruned && named.rows[0]?.hash !== signed.hash) return { tenant_id: tenant, seq: from, reason: 'checkpoint_head' }
  }
  const start = signed === undefined || from < 0 ? undefined : { seq: from, prev_hash: '', hash: String(signed.hash) }
  const checker = recordChainChecker(start, sha256)
  for (let after = from; ; ) {
    const page = await db.execute({
      sql: 'select seq, body from traces where tenant_id = ? and seq > ? order by seq limit ?',
      args: [tenant, after, PAGE],
    })
    for (const row of page.rows) {
      const broken = checker.push(JSON.parse(String(row.body)) as Sealed)
      if (broken !== undefined) return { tenant_id: tenant, seq: from + 1 + broken.index, reason: broken.reason }
      after = Number(row.seq)
    }
    if (page.rows.length < PAGE) return undefined
  }
}
