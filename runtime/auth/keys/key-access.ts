import type { Log } from '../../../shared/log/log.ts'
import { toBase64Url } from '../../../shared/sign/bytes.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { API_KEY_PREFIX, BOOTSTRAP_KEY } from '../../../shared/wire/runtime/auth.ts'
import { scopes } from '../../../shared/wire/runtime/scopes.ts'
import type { Principal } from '../../http/http-env.ts'
import { FIRST_TENANT } from '../../schema/first-tenant.ts'
import { type KeyRow, type KeyStore, statusOfKey } from './store.ts'

/** A key that another process revokes is refused here after this time at the latest. */
const RECHECK_MS = 1000
const REMEMBERED = 10_000
const TOUCH_EVERY_MS = 10_000

/** The key of the environment is in no table, so it has no id of its own. */
export const BOOTSTRAP_ID = 'bootstrap'

export interface KeyAccessDeps {
  store: Pick<KeyStore, 'getByHash' | 'touch'>
  now: () => Date
  log: Log
  /** PLATFORM_BOOTSTRAP_KEY: a key with every scope, in the first tenant. */
  bootstrapKey?: string | undefined
}

interface Remembered {
  key: KeyRow
  principal: Principal
  readMs: number
}

export type KeyAccess = ReturnType<typeof keyAccess>

/**
 * Who a key is. What was read from the store is remembered for a second, so that a busy key costs one read a second and
 * not one a request; a revocation in this process counts at once. Keys that are not known are never remembered.
 */
export function keyAccess({ store, now, log, bootstrapKey }: KeyAccessDeps) {
  const remembered = new Map<string, Remembered>()
  const bootstrap = bootstrapKey === undefined ? undefined : hashKey(bootstrapKey)
  const bootstrapper: Principal = { tenantId: FIRST_TENANT, keyId: BOOTSTRAP_ID, scopes }
  let used = new Map<string, number>()
  let touchMs = 0
  let revocations = 0

  async function read(hash: string, nowMs: number): Promise<Remembered | undefined> {
    const before = revocations
    const key = await store.getByHash(hash)
    if (key === undefined || statusOfKey(key, nowMs) !== 'active') {
      remembered.delete(hash)
      return undefined
    }
    const { tenantId, id: keyId, scopes, expiresMs } = key
    const principal = { tenantId, keyId, scopes, ...(expiresMs !== undefined && { expiresMs }) }
    const found = { key, principal, readMs: nowMs }
    // A key that was revoked while this read was under way must not come back.
    if (before === revocations) remember(hash, found)
    return found
  }

  function remember(hash: string, found: Remembered): void {
    remembered.delete(hash)
    remembered.set(hash, found)
    if (remembered.size <= REMEMBERED) return
    const oldest = remembered.keys().next()
    if (!oldest.done) remembered.delete(oldest.value)
  }

  async function flush(): Promise<void> {
    if (used.size === 0) return
    const batch = used
    used = new Map()
    try {
      await store.touch(batch)
    } catch (error) {
      // Only a time in a list: not worth a refusal, and the next use writes a newer one.
      log.warn('the times of last use of API keys were not written', { error })
    }
  }

  return {
    async principalOf(rawKey: string): Promise<Principal | undefined> {
      const hash = hashKey(rawKey)
      if (hash === bootstrap) return bootstrapper
      const nowMs = now().getTime()
      let found = remembered.get(hash)
      if (found === undefined || nowMs - found.readMs >= RECHECK_MS || nowMs < found.readMs) {
        found = await read(hash, nowMs)
      }
      if (found === undefined || statusOfKey(found.key, nowMs) !== 'active') return undefined
      used.set(found.key.id, nowMs)
      if (nowMs - touchMs >= TOUCH_EVERY_MS) {
        touchMs = nowMs
        void flush()
      }
      return found.principal
    },
    /** To be called after a key was revoked: its next use is looked up again. */
    revoked(keyId: string): void {
      revocations++
      for (const [hash, { key }] of remembered) if (key.id === keyId) remembered.delete(hash)
    },
    /** Writes when the keys were last used; a list that shows it, and the end of the process, do so first. */
    flush,
  }
}

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
