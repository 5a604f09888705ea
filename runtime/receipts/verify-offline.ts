import { type GivenProof, type ProofResult, verifyProof } from '../../shared/proof/receipt-proof.ts'
import { fromHex } from '../../shared/sign/bytes.ts'
import { verifySignature } from '../../shared/sign/ed25519.ts'
import type { ToHash } from '../../shared/sign/journal-walk.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'

/** The verifier with the cryptography of this host. */
export function verifyOffline(given: GivenProof, sha256: Sha256): Promise<ProofResult> {
  return verifyProof(given, { sha256: hashWith(sha256), isSigned: verifySignature })
}

export function hashWith(sha256: Sha256) {
  return ({ before, text }: ToHash): string => sha256Hex(text, sha256, fromHex(before))
}
