import { fromBase64, toBase64Url, utf8 } from '../../shared/sign/bytes.ts'
import { type Signer, verifySignature } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { Checkpoint, CheckpointBody } from '../../shared/wire/router/checkpoint.ts'

export interface SignedCheckpoint {
  checkpoint: Checkpoint
  /** The `prev_checkpoint` of the one that follows. */
  digest: string
}

/** So that no other signed text can pass for a checkpoint. */
const CHECKPOINT_DOMAIN = 'router-checkpoint-v1\n'

/** What the signature covers (docs/spec/proof.md). */
function signedBytes(body: CheckpointBody): Uint8Array<ArrayBuffer> {
  return utf8(CHECKPOINT_DOMAIN + canonicalize(body))
}

export async function signCheckpoint(
  body: Omit<CheckpointBody, 'v' | 'key_id'>,
  signer: Signer,
  sha256: Sha256,
): Promise<SignedCheckpoint> {
  const whole: CheckpointBody = { v: 1, ...body, key_id: signer.keyId }
  const bytes = signedBytes(whole)
  return {
    checkpoint: { ...whole, sig: toBase64Url(await signer.sign(bytes)) },
    digest: sha256Hex(bytes, sha256),
  }
}

export function checkpointDigest({ sig: _sig, ...body }: Checkpoint, sha256: Sha256): string {
  return sha256Hex(signedBytes(body), sha256)
}

/** Public keys by their id. */
export type TrustedKeys = ReadonlyMap<string, Uint8Array<ArrayBuffer>>

export async function checkSignature({ sig, ...body }: Checkpoint, keys: TrustedKeys): Promise<boolean> {
  const key = keys.get(body.key_id)
  if (key === undefined) return false
  try {
    const signature = fromBase64(sig)
    return toBase64Url(signature) === sig && (await verifySignature(key, signature, signedBytes(body)))
  } catch {
    // A text that is no base64, or members that have no canonical form.
    return false
  }
}
