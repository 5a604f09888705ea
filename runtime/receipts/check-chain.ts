import type { ReceiptPayload, VerifyReason } from '../../shared/wire/runtime/receipt.ts'

export type ChainCheck = { ok: true } | { ok: false; reason: VerifyReason; brokenAt?: number }

/** What a walk over a journal came to. */
export type Walk = { ok: true; count: number; head: string } | { ok: false; brokenAt: number }

/** Whether the journal that was walked is the one under the signature. */
export function checkChain(walk: Walk, { eventCount, journalHash }: ReceiptPayload): ChainCheck {
  if (!walk.ok) return { ok: false, reason: 'chain_broken', brokenAt: walk.brokenAt }
  if (walk.count !== eventCount) return { ok: false, reason: 'event_count_mismatch' }
  if (walk.head !== journalHash) return { ok: false, reason: 'journal_hash_mismatch' }
  return { ok: true }
}
