import { type PublicKey, verifySignature } from './ed25519.ts'

/** A public key with the span in which it may have signed. Retired keys stay listed for ever. */
export interface ListedKey extends PublicKey {
  status: 'active' | 'retired' | 'revoked'
  notBefore: Date
  notAfter?: Date
}

export type KeyVerdict = 'ok' | 'unknown_key' | 'key_revoked' | 'key_not_valid' | 'signature_invalid'

/** Finds the key by id, checks that it was valid at `signedAt`, then the signature itself. */
export async function verifyWithKeyring(
  keys: readonly ListedKey[],
  keyId: string,
  signedAt: Date,
  signature: Uint8Array<ArrayBuffer>,
  message: Uint8Array<ArrayBuffer>,
): Promise<KeyVerdict> {
  const key = keys.find(listed => listed.keyId === keyId)
  if (!key) return 'unknown_key'
  if (!(await verifySignature(key.publicKey, signature, message))) return 'signature_invalid'
  if (key.status === 'revoked') return 'key_revoked'
  if (signedAt < key.notBefore || (key.notAfter !== undefined && signedAt > key.notAfter)) return 'key_not_valid'
  return 'ok'
}
