import { EnvError } from '../../shared/env/read-env.ts'
import { fromHex, utf8 } from '../../shared/sign/bytes.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'

/** A key of this router (docs/spec/router.md §2.6); the secret itself is not kept. */
export interface RouterKey {
  tenantId: string
  /** May reload the config and sees every tenant. */
  admin: boolean
  digest: Uint8Array
}

const MIN_SECRET = 24
const ENTRY = /^([A-Za-z0-9._-]{1,64})(!?):(.*)$/
const HASHED = /^sha256:([0-9a-fA-F]{64})$/

/**
 * Reads `tenant:secret`, `tenant!:secret` for an admin and `tenant:sha256:<hex>`, separated by commas or lines. Throws
 * EnvError, which never repeats a secret.
 */
export function parseKeys(text: string, sha256: Sha256): RouterKey[] {
  const keys = entries(text).map((entry, at) => parseKey(entry, at + 1, sha256))
  if (keys.length === 0) throw new EnvError('ROUTER_KEYS: expected at least one tenant:secret')
  keys.forEach((key, at) => {
    const first = keys.findIndex(other => isEqual(other.digest, key.digest))
    if (first < at) throw new EnvError(`ROUTER_KEYS: entries ${first + 1} and ${at + 1} have the same secret`)
  })
  return keys
}

/** The secrets as they stand in the list, for the log's redaction. */
export function secretsOf(text: string): string[] {
  return entries(text).map(entry => entry.slice(entry.indexOf(':') + 1))
}

function entries(text: string): string[] {
  return text
    .split(/[,\n]/)
    .map(entry => entry.trim())
    .filter(entry => entry !== '' && !entry.startsWith('#'))
}

function parseKey(entry: string, at: number, sha256: Sha256): RouterKey {
  const bad = (what: string) => new EnvError(`ROUTER_KEYS: entry ${at}: ${what}`)
  const [, tenantId, mark, secret] = ENTRY.exec(entry) ?? []
  if (tenantId === undefined || secret === undefined) {
    throw bad('expected tenant:secret, tenant!:secret or tenant:sha256:<64 hex digits>')
  }
  const key = { tenantId, admin: mark === '!' }
  if (secret.startsWith('sha256:')) {
    const hex = HASHED.exec(secret)?.[1]
    if (hex === undefined) throw bad('expected 64 hex digits after sha256:')
    return { ...key, digest: fromHex(hex.toLowerCase()) }
  }
  if (secret.length < MIN_SECRET) throw bad(`the secret of ${tenantId} is shorter than ${MIN_SECRET} characters`)
  return { ...key, digest: sha256(utf8(secret)) }
}

/** Finds the key of a secret in a time that tells nothing about the keys: every digest is compared whole. */
export function keyring(keys: readonly RouterKey[], sha256: Sha256): (secret: string) => RouterKey | undefined {
  return secret => {
    const digest = sha256(utf8(secret))
    let found: RouterKey | undefined
    for (const key of keys) if (isEqual(key.digest, digest)) found = key
    return found
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ (b[i] ?? 0)
  return difference === 0
}
