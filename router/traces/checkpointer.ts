import type { InStatement } from '@libsql/client/web'
import type { Log } from '../../shared/log/log.ts'
import type { Signer } from '../../shared/sign/ed25519.ts'
import { GENESIS } from '../../shared/sign/record-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { checkpoints, feedback as feedbackTable } from '../schema/tables.ts'
import { type SignedCheckpoint, signCheckpoint } from './checkpoint.ts'
import type { chainCommitter } from './commit.ts'
import type { KnownCopies, LineSink } from './known-copies.ts'
import { type LeaseTerm, leaseCondition } from './lease.ts'
import { dropDaysUpTo } from './savings-days.ts'

export interface CheckpointerOptions {
  db: Db
  clock: Clock
  log: Log
  signer: Signer
  sha256: Sha256
  sinks: readonly LineSink[]
  committer: ReturnType<typeof chainCommitter>
  /** Called after each one. */
  made: () => void
}

/** Rows of each kind in one step of a pruning: a longer one would hold the store for too long. */
const PRUNE_STEP = 500

/** Signs the heads of the chains (docs/spec/proof.md). Its calls must not overlap with commits. */
export function checkpointer({ db, clock, log, signer, sha256, sinks, committer, made }: CheckpointerOptions) {
  let known: Promise<KnownCopies> | undefined
  /** A router that is idle makes no copies. */
  const copies = () => (known ??= import('./known-copies.ts').then(it => it.knownCopies({ db, log, sha256, sinks })))

  function insert({ checkpoint, digest }: SignedCheckpoint, { holder, epoch }: LeaseTerm): InStatement {
    const { tenant_id, kind, seq } = checkpoint
    return {
      sql: `insert into checkpoints (tenant_id, kind, seq, digest, body) select ?, ?, ?, ?, ? where ${leaseCondition}`,
      args: [tenant_id, kind, seq, digest, JSON.stringify(checkpoint), holder, epoch],
    }
  }

  /** Of a chain whose records, or whose feedback up to `reports`, are under no checkpoint yet. */
  async function checkpoint(tenant: string, reports = -1): Promise<boolean> {
    const term = await committer.open()
    const chain = committer.chainOf(tenant)
    if (term === undefined || chain.head === undefined) return false
    if (chain.head.seq <= chain.checkpointed && reports <= chain.reported) return false
    const { seq, hash } = chain.head
    const feedback = await feedbackHead(db, tenant)
    const signed = await signCheckpoint(
      {
        kind: 'head',
        tenant_id: tenant,
        seq,
        hash,
        ...feedback,
        ts: clock.now().toISOString(),
        prev_checkpoint: chain.digest,
      },
      signer,
      sha256,
    )
    const { rowsAffected } = await db.execute(insert(signed, term))
    if (rowsAffected !== 1) {
      committer.forget()
      return false
    }
    chain.digest = signed.digest
    chain.checkpointed = seq
    chain.reported = feedback.feedback_seq
    made()
    return true
  }

  /** One step: a signed checkpoint at the last record dropped, and the records dropped, in one transaction. */
  async function pruneStep(tenant: string, before: number): Promise<number> {
    const term = await committer.open()
    if (term === undefined) throw new Error('Another process writes to this store: prune there, or stop it first.')
    const cut = await pruneCut(db, tenant, before)
    if (cut === undefined) return 0
    const chain = committer.chainOf(tenant)
    const { seq, hash, feedback_seq, feedback_hash } = cut
    const signed = await signCheckpoint(
      {
        kind: 'prune',
        tenant_id: tenant,
        seq,
        hash,
        feedback_seq,
        feedback_hash,
        ts: clock.now().toISOString(),
        prev_checkpoint: chain.digest,
      },
      signer,
      sha256,
    )
    const results = await db.write([
      insert(signed, term),
      {
        sql: `delete from traces where tenant_id = ? and seq <= ? and ${leaseCondition}`,
        args: [tenant, seq, term.holder, term.epoch],
      },
      {
        sql: `delete from feedback where tenant_id = ? and seq <= ? and ${leaseCondition}`,
        args: [tenant, feedback_seq, term.holder, term.epoch],
      },
      {
        sql: `delete from shadows where (tenant_id, trace_id) in (
            select tenant_id, trace_id from shadows where tenant_id = ? and ts_ms < ? order by ts_ms limit ${PRUNE_STEP})
          and ${leaseCondition}`,
        args: [tenant, before, term.holder, term.epoch],
      },
      dropDaysUpTo(tenant, before, term),
    ])
    if (results[0]?.rowsAffected !== 1) {
      committer.forget()
      return 0
    }
    chain.digest = signed.digest
    made()
    return results[1]?.rowsAffected ?? 0
  }

  return { checkpoint, copyOut: () => copyOut({ db, sinks, log, copies }), pruneStep }
}

/** Hands each stored checkpoint that has no copy yet to the sinks, oldest first; one that fails is tried again next time. */
async function copyOut({
  db,
  sinks,
  log,
  copies,
}: Pick<CheckpointerOptions, 'db' | 'sinks' | 'log'> & { copies: () => Promise<KnownCopies> }): Promise<void> {
  if (sinks.length === 0) return
  const answer = await db.execute('select ix, tenant_id, body from checkpoints where copied = 0 order by ix limit 1000')
  let copied: number | undefined
  for (const row of rowsOf<Pick<RowOf<typeof checkpoints>, 'ix' | 'tenant_id' | 'body'>>(answer)) {
    try {
      await (await copies()).compare(row.tenant_id)
      for (const sink of sinks) await sink.append(row.body)
    } catch (error) {
      log.error('a checkpoint could not be copied; it is kept in the store and tried again', { error })
      break
    }
    copied = row.ix
  }
  if (copied === undefined) return
  await db.execute({ sql: 'update checkpoints set copied = 1 where copied = 0 and ix <= ?', args: [copied] })
}

type FeedbackEnd = Pick<RowOf<typeof feedbackTable>, 'seq' | 'hash'>

/** The end of the feedback chain, or where pruning left it. */
async function feedbackHead(db: Db, tenant: string): Promise<{ feedback_seq: number; feedback_hash: string }> {
  const answer = await db.execute({
    sql: 'select seq, hash from feedback where tenant_id = ? order by seq desc limit 1',
    args: [tenant],
  })
  const [row] = rowsOf<FeedbackEnd>(answer)
  return row === undefined ? prunedFeedback(db, tenant) : { feedback_seq: row.seq, feedback_hash: row.hash }
}

async function prunedFeedback(db: Db, tenant: string): Promise<{ feedback_seq: number; feedback_hash: string }> {
  const answer = await db.execute({
    sql: "select body ->> 'feedback_seq' as seq, body ->> 'feedback_hash' as hash from checkpoints where tenant_id = ? and kind = 'prune' order by ix desc limit 1",
    args: [tenant],
  })
  const [row] = rowsOf<Record<'seq' | 'hash', unknown>>(answer)
  return row === undefined
    ? { feedback_seq: -1, feedback_hash: GENESIS }
    : { feedback_seq: Number(row.seq), feedback_hash: String(row.hash) }
}

/** The last record of the prefix that is older than `before`, at most one step on, and the same for its feedback. */
async function pruneCut(db: Db, tenant: string, before: number) {
  const answer = await db.execute({
    sql: `with first(seq) as (select seq from traces where tenant_id = ?1 order by seq limit 1),
        young(seq) as (select min(seq) from traces where tenant_id = ?1 and ts_ms >= ?2
          and seq < (select seq from first) + ${PRUNE_STEP})
      select seq, body ->> 'hash' as hash from traces where tenant_id = ?1
        and seq < coalesce((select seq from young), (select seq from first) + ${PRUNE_STEP})
      order by seq desc limit 1`,
    args: [tenant, before],
  })
  const [last] = rowsOf<{ seq: number; hash: unknown }>(answer)
  if (last === undefined) return undefined
  const found = await db.execute({
    sql: `select seq, hash from feedback where tenant_id = ?1 and seq < coalesce(
        (select min(f.seq) from feedback f left join traces t on t.trace_id = f.trace_id
          where f.tenant_id = ?1 and (t.seq > ?2 or f.ts_ms >= ?3)), 9007199254740991)
        and seq < (select min(seq) from feedback where tenant_id = ?1) + ${PRUNE_STEP}
      order by seq desc limit 1`,
    args: [tenant, last.seq, before],
  })
  const [feedback] = rowsOf<FeedbackEnd>(found)
  return {
    seq: last.seq,
    hash: String(last.hash),
    ...(feedback === undefined
      ? await prunedFeedback(db, tenant)
      : { feedback_seq: feedback.seq, feedback_hash: feedback.hash }),
  }
}
