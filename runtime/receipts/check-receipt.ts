import { fromBase64, utf8 } from '../../shared/sign/bytes.ts'
import { verifySignature } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type ListedKey, verifyWithKeyring } from '../../shared/sign/keyring.ts'
import {
  type ClaimedReceipt,
  type ReceiptPayload,
  receiptPayload,
  type VerifyReason,
} from '../../shared/wire/runtime/receipt.ts'

export type SignatureCheck = { ok: true; payload: ReceiptPayload } | { ok: false; reason: VerifyReason }

const NOTHING = new Uint8Array(0)
const FORGED = { ok: false, reason: 'signature_invalid' } as const

/** Whether one of the listed keys signed exactly this payload while it could. */
export async function checkReceipt(
  { payload, signature, publicKey }: ClaimedReceipt,
  keys: readonly ListedKey[],
): Promise<SignatureCheck> {
  const { keyId, issuedAt } = payload
  const key = keys.find(listed => listed.keyId === keyId)
  if (!key) return { ok: false, reason: 'unknown_key' }
  const signedAt = new Date(typeof issuedAt === 'string' ? issuedAt : Number.NaN)
  const bytes = canonicalBytes(payload)
  if (bytes === undefined || Number.isNaN(signedAt.getTime())) return FORGED
  if (publicKey !== undefined && !equalBytes(decoded(publicKey), key.publicKey)) return FORGED
  const verdict = await verifyWithKeyring(keys, key.keyId, signedAt, decoded(signature), bytes)
  if (verdict !== 'ok') return { ok: false, reason: verdict }
  const read = receiptPayload.safeParse(payload)
  return read.success ? { ok: true, payload: read.data } : FORGED
}

/** The same with a single key that somebody trusts, and nothing known of when it was valid. */
export async function checkWithKey(
  { payload, signature }: ClaimedReceipt,
  key: Uint8Array<ArrayBuffer>,
): Promise<SignatureCheck> {
  const bytes = canonicalBytes(payload)
  if (bytes === undefined || !(await verifySignature(key, decoded(signature), bytes))) return FORGED
  const read = receiptPayload.safeParse(payload)
  return read.success ? { ok: true, payload: read.data } : FORGED
}

/** Undefined for what has no canonical form, which nobody can have signed. */
function canonicalBytes(payload: unknown): Uint8Array<ArrayBuffer> | undefined {
  try {
    return utf8(canonicalize(payload))
  } catch {
    return undefined
  }
}

function decoded(text: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(text)
  } catch {
    return NOTHING
  }
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}
