import { toBase64, utf8 } from '../../shared/sign/bytes.ts'
import type { Signer } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { RECEIPT_ALGORITHM, type Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Statement } from './payload.ts'

/**
 * The signed receipt. The public key goes with it, so that a verifier needs to have kept only a fingerprint; it is bound to
 * the payload by `keyId`, which is the beginning of its fingerprint.
 */
export async function issue(statement: Statement, key: Signer, issuedAt: Date): Promise<Receipt> {
  const payload = { ...statement, issuedAt: issuedAt.toISOString(), keyId: key.keyId }
  const signature = await key.sign(utf8(canonicalize(payload)))
  return {
    payload,
    signature: toBase64(signature),
    algorithm: RECEIPT_ALGORITHM,
    publicKey: toBase64(key.publicKey),
  }
}
