import { readFile } from 'node:fs/promises'
import { RUNTIME_KEYS, unknownMember } from '../../shared/proof/members.ts'
import { ProofTextError, readProofBytes } from '../../shared/proof/read-proof.ts'
import type { ProofResult } from '../../shared/proof/receipt-proof.ts'
import type { VerifyReason } from '../../shared/wire/runtime/receipt.ts'

/** What was given cannot be read as what it should be; told in one line. */
export class Unusable extends Error {}

/** The keys that were given do not let the receipt stand; `reason` is the one that the service gives. */
export class KeyRefused extends Unusable {
  readonly reason: VerifyReason
  constructor(reason: VerifyReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** A file of a proof, read strictly; a text that says two things is refused by its reason, which is thrown. */
export async function readProofFile(path: string, what: string): Promise<unknown> {
  let bytes: Uint8Array
  try {
    bytes = await readFile(path)
  } catch (cause) {
    throw new Unusable(`${path} is not ${what}: it cannot be read`, { cause })
  }
  try {
    return readProofBytes(bytes)
  } catch (cause) {
    if (!(cause instanceof ProofTextError)) throw cause
    throw cause.reason === 'not_json' ? new Unusable(`${path} is not ${what}: ${cause.message}`, { cause }) : cause
  }
}

/** The verdict on a text that says two things. */
export function ambiguous(error: unknown): Exclude<ProofResult, { valid: true }> {
  if (!(error instanceof ProofTextError) || error.reason === 'not_json') throw error
  return { valid: false, reason: error.reason, explanation: error.message }
}

/** The fingerprint of a given key; of a document with several keys, of the one that the receipt names, where it was in use then. */
export async function fingerprintOf(given: string, receipt: unknown): Promise<string> {
  const { publicKey, signer } = await import('../../shared/sign/ed25519.ts')
  const { fromBase64, toBase64 } = await import('../../shared/sign/bytes.ts')
  const raw = (text: string) => {
    try {
      return publicKey(fromBase64(text)).fingerprint
    } catch (cause) {
      throw new Unusable(`--key: expected a file, or 32 bytes in base64`, { cause })
    }
  }
  const { keyId, issuedAt } = (receipt as { payload?: Record<string, unknown> } | null)?.payload ?? {}
  if (/^[A-Za-z0-9+/]{43}=$/.test(given)) {
    const fingerprint = raw(given)
    const own = await signer(fromBase64(given))
    if (own.keyId !== keyId) return fingerprint
    throw new Unusable(
      `--key is the private key that signed the receipt: keep it secret, and give its public key, ${toBase64(own.publicKey)}`,
    )
  }
  const [named, again] = (await keysOf(given)).filter(key => key.keyId === keyId)
  if (again)
    throw new Unusable(
      `${given} lists the key ${again.keyId} twice: take a copy of /.well-known/platform-receipts anew`,
    )
  if (!named) throw new KeyRefused('unknown_key', `${given} does not list the key that the receipt names`)
  if (named.status === 'revoked')
    throw new KeyRefused('key_revoked', `${given} says that the key ${named.keyId} was revoked`)
  const at = Date.parse(String(issuedAt))
  if (at < Date.parse(named.notBefore) || at > Date.parse(named.notAfter ?? ''))
    throw new KeyRefused(
      'key_not_valid',
      `${given} says that the key ${named.keyId} was in use from ${named.notBefore} to ${named.notAfter ?? 'now'}, and the receipt was issued outside of that`,
    )
  const fingerprint = raw(named.publicKey)
  if (fingerprint === named.keyFingerprint) return fingerprint
  throw new Unusable(`${given} gives the key ${named.keyId} a fingerprint that is not its own`)
}

async function keysOf(path: string) {
  const { receiptKeys } = await import('../../shared/wire/runtime/receipt.ts')
  const what = 'a copy of /.well-known/platform-receipts'
  let given: unknown
  try {
    given = await readProofFile(path, what)
  } catch (error) {
    throw error instanceof ProofTextError ? new Unusable(`${path} is not ${what}: ${error.message}`) : error
  }
  const read = receiptKeys.safeParse(given)
  const extra = unknownMember(given, RUNTIME_KEYS)
  if (read.success && extra === undefined) return read.data.keys
  const [issue] = read.error?.issues ?? []
  const why = issue ? [issue.path.join('.'), issue.message].filter(Boolean).join(': ') : `it has no member ${extra}`
  throw new Unusable(`${path} is not ${what}: ${why}`)
}
