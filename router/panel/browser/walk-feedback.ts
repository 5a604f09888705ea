import { FEEDBACK, unknownMember } from '../../../shared/proof/members.ts'
import type { Checkpoint } from '../../../shared/wire/router/checkpoint.ts'
import { recordHash } from './record-hash.ts'
import type { Head } from './walk-chain.ts'

export interface FeedbackWalk {
  /** Reports behind what was pruned. */
  reports: number
  /** 0-based position of the first report that fails, as `router verify` counts it. */
  broken?: { index: number; reason: string }
}

/** Walks the reports of one tenant in their order, and holds them against what signed checkpoints name of them. */
export async function walkFeedback(
  records: readonly unknown[],
  start: Head,
  checkpoints: readonly Pick<Checkpoint, 'feedback_seq' | 'feedback_hash'>[],
): Promise<FeedbackWalk> {
  let head = start
  const hashes = new Map<number, string>()
  // What was pruned while this was read is still in what was read before.
  const left = records.filter(record => !(numberOf(record) <= start.seq))
  for (const [index, record] of left.entries()) {
    const reason = await fault(record, head)
    if (reason !== undefined) return { reports: left.length, broken: { index, reason: `feedback_${reason}` } }
    const { hash } = record as { hash: string }
    head = { seq: head.seq + 1, hash }
    hashes.set(head.seq, hash)
  }
  const from = start.seq + 1
  for (const { feedback_seq, feedback_hash } of checkpoints) {
    if (feedback_seq < from) continue
    const found = hashes.get(feedback_seq)
    if (found === undefined) {
      return { reports: left.length, broken: { index: head.seq + 1 - from, reason: 'feedback_tail_cut' } }
    }
    if (found !== feedback_hash) {
      return { reports: left.length, broken: { index: feedback_seq - from, reason: 'feedback_head' } }
    }
  }
  return { reports: left.length }
}

async function fault(record: unknown, head: Head): Promise<string | undefined> {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return 'parse'
  // It has no canonical form, and that is the only reason for it.
  const own = await recordHash(record)
  if (own === undefined) return 'lone_surrogate'
  if (unknownMember(record, FEEDBACK) !== undefined) return 'unknown_member'
  const { seq, prev_hash, hash } = record as Record<string, unknown>
  if (seq !== head.seq + 1) return 'seq'
  if (prev_hash !== head.hash) return 'prev_hash'
  return hash === own ? undefined : 'hash'
}

function numberOf(record: unknown): number {
  const seq = typeof record === 'object' && record !== null && 'seq' in record ? record.seq : undefined
  return typeof seq === 'number' ? seq : Number.NaN
}
