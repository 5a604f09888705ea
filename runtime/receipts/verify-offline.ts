import { fromBase64 } from '../../shared/sign/bytes.ts'
import { publicKey } from '../../shared/sign/ed25519.ts'
import { checkJournal } from '../../shared/sign/journal-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { ClaimedJournal } from '../../shared/wire/runtime/journal.ts'
import type { ClaimedReceipt, ReceiptPayload, VerifyReason } from '../../shared/wire/runtime/receipt.ts'
import { checkChain } from './check-chain.ts'
import { checkWithKey } from './check-receipt.ts'

export interface OfflineRequest {
  receipt: ClaimedReceipt
  /** The export of the run's journal, where somebody has it. */
  journal?: ClaimedJournal | undefined
  /** What the verifier knows of the signer: SHA-256 of the public key in hex. */
  fingerprint: string
}

export type OfflineResult =
  | { valid: true; payload: ReceiptPayload; journal: 'ok' | 'not_checked' }
  | { valid: false; reason: VerifyReason; brokenAt?: number; explanation: string }

/**
 * Whether a receipt was signed by the key with this fingerprint, and whether a journal is the one it speaks of. Nothing is asked of
 * any server or store (runtime contract §11); when a key was retired or revoked cannot be told from here.
 */
export async function verifyOffline(
  { receipt, journal, fingerprint }: OfflineRequest,
  sha256: Sha256,
): Promise<OfflineResult> {
  const key = keyOf(receipt)
  if (key?.fingerprint !== fingerprint.toLowerCase()) {
    return refused('unknown_key', 'the public key in the receipt is not the one with this fingerprint')
  }
  if (receipt.payload.keyId !== key.keyId) {
    return refused('unknown_key', 'the receipt names another key than the one it carries')
  }
  const signed = await checkWithKey(receipt, key.publicKey)
  if (!signed.ok)
    return refused(signed.reason, 'the receipt was changed after it was signed, or never signed with this key')
  const { payload } = signed
  if (!journal) return { valid: true, payload, journal: 'not_checked' }
  const walked = checkJournal(payload.runId, journal.events, sha256)
  const chain = checkChain(walked.ok ? walked : { ok: false, brokenAt: walked.brokenAt }, payload)
  if (chain.ok) return { valid: true, payload, journal: 'ok' }
  return {
    ...refused(chain.reason, EXPLAINED[chain.reason] ?? 'the journal is not the one that was signed'),
    ...(chain.brokenAt !== undefined && { brokenAt: chain.brokenAt }),
  }
}

const EXPLAINED: Partial<Record<VerifyReason, string>> = {
  chain_broken: 'an event was edited, moved, left out or put in',
  event_count_mismatch: 'events are missing at the end, or were added there',
  journal_hash_mismatch: 'the journal holds together, and it is another one than was signed',
}

function refused(reason: VerifyReason, explanation: string) {
  return { valid: false as const, reason, explanation }
}

function keyOf({ publicKey: text }: ClaimedReceipt) {
  if (text === undefined) return undefined
  try {
    return publicKey(fromBase64(text))
  } catch {
    return undefined
  }
}
