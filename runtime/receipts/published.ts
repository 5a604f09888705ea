import { toBase64 } from '../../shared/sign/bytes.ts'
import type { ListedKey } from '../../shared/sign/keyring.ts'
import { CHAIN } from '../../shared/wire/runtime/journal.ts'
import { RECEIPT_ALGORITHM, type ReceiptKey, type ReceiptKeys } from '../../shared/wire/runtime/receipt.ts'

/** The document at `/.well-known/platform-receipts`; undefined before there is a key. */
export function published(keys: readonly ListedKey[]): ReceiptKeys | undefined {
  const active = keys.find(({ status }) => status === 'active')
  if (!active) return undefined
  const { keyId, publicKey, keyFingerprint } = toReceiptKey(active)
  return {
    algorithm: RECEIPT_ALGORITHM,
    keyId,
    publicKey,
    keyFingerprint,
    chain: CHAIN,
    canonicalization: 'RFC8785',
    keys: keys.map(toReceiptKey),
    docs: '/openapi.json',
  }
}

function toReceiptKey({ keyId, fingerprint, publicKey, status, notBefore, notAfter }: ListedKey): ReceiptKey {
  return {
    keyId,
    publicKey: toBase64(publicKey),
    keyFingerprint: fingerprint,
    status,
    notBefore: notBefore.toISOString(),
    ...(notAfter && { notAfter: notAfter.toISOString() }),
  }
}
