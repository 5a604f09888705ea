import { toBase64Url } from '../../../shared/sign/bytes.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { API_KEY_PREFIX, BOOTSTRAP_KEY } from '../../../shared/wire/runtime/auth.ts'

/** `wb_live_` and 32 random bytes. */
export function newApiKey(): string {
  return API_KEY_PREFIX + toBase64Url(crypto.getRandomValues(new Uint8Array(32)))
}

/** What the store keeps of a key: enough to recognise it, too little to use it. 256 random bits need no slow hash. */
export function hashKey(rawKey: string): string {
  return sha256Hex(rawKey)
}

/** Enough of a key to tell it from others in a list. */
export function prefixOf(rawKey: string): string {
  return rawKey.slice(0, 12)
}

const MAX_KEY = 512
const BEARER = /^Bearer ([^\s]+)$/i

/** The key of an `Authorization` header; undefined when there is none or it does not have the form of our keys. */
export function bearerKey(authorization: string | undefined): string | undefined {
  const given = BEARER.exec(authorization ?? '')?.[1]
  return given !== undefined && given.length <= MAX_KEY && BOOTSTRAP_KEY.test(given) ? given : undefined
}
