import { isPayload, plainBase64, signedBytes, walkFault } from '../../shared/proof/receipt-proof.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type ListedKey, verifyWithKeyring } from '../../shared/sign/keyring.ts'
import type { ClaimedReceipt, ReceiptPayload, VerifyReason } from '../../shared/wire/runtime/receipt.ts'
import type { Statement } from './payload.ts'

export type SignatureCheck = { ok: true; payload: ReceiptPayload } | { ok: false; reason: VerifyReason }

const FORGED = { ok: false, reason: 'signature_invalid' } as const

/** Whether one of the listed keys signed exactly this payload while it could. */
export async function checkReceipt(
  { payload, signature, publicKey }: ClaimedReceipt,
  keys: readonly ListedKey[],
): Promise<SignatureCheck> {
  const { keyId, issuedAt } = payload
  const key = keys.find(listed => listed.keyId === keyId)
  const isOther = publicKey !== undefined && !equalBytes(plainBase64(publicKey), key?.publicKey ?? new Uint8Array())
  if (!key || isOther) return { ok: false, reason: 'unknown_key' }
  const signedAt = new Date(typeof issuedAt === 'string' ? issuedAt : Number.NaN)
  const bytes = signedBytes(payload)
  if (bytes === undefined || Number.isNaN(signedAt.getTime())) return FORGED
  const verdict = await verifyWithKeyring(keys, key.keyId, signedAt, plainBase64(signature), bytes)
  if (verdict !== 'ok') return { ok: false, reason: verdict }
  return isPayload(payload) ? { ok: true, payload } : FORGED
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}

/** Whether the run in the store is still the one that was signed; the journal is checked by its chain. */
export function checkRecord(
  payload: ReceiptPayload,
  stored: Statement,
  /** What it was given is gone by the rule of its agent, and there is nothing to hold against the hash. */
  inputDropped = false,
): VerifyReason | undefined {
  if (!inputDropped && payload.inputHash !== stored.inputHash) return 'input_hash_mismatch'
  if (payload.outputHash !== stored.outputHash) return 'output_hash_mismatch'
  const { inputHash: _i, outputHash: _o, journalHash: _j, eventCount: _e, ...now } = stored
  const { issuedAt: _a, keyId: _k, inputHash: _x, outputHash: _y, journalHash: _z, eventCount: _c, ...then } = payload
  return canonicalize(now) === canonicalize(then) ? undefined : 'record_mismatch'
}

/** The journal of a run on a node is not here: its head and count are, as they were streamed. */
export function checkRemoteRun(payload: ReceiptPayload, stored: Statement): VerifyReason | undefined {
  const walk = { ok: true, count: stored.eventCount, head: stored.journalHash } as const
  return walkFault(walk, payload)?.reason ?? checkRecord(payload, stored)
}
