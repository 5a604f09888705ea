import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../../shared/http/api-error.ts'
import type { ApiKeyCreate, ApiKeyCreated } from '../../../shared/wire/runtime/auth.ts'
import { mayMint } from '../../../shared/wire/runtime/scopes.ts'
import type { Principal } from '../../http/http-env.ts'
import { notFound } from '../../http/own-tenant.ts'
import { hashKey, newApiKey, prefixOf } from './key-access.ts'
import { type KeyStore, type NewKey, toApiKey } from './store.ts'

export interface MintDeps {
  store: KeyStore
  now: () => Date
  newId: () => string
}

export interface Minted {
  id: string
  statement: InStatement
  answer: ApiKeyCreated
}

/** A new key, once its statement is written. A key never gives more than its maker holds (docs/spec/runtime.md §13), and not for longer. */
export function mintKey(
  { store, now, newId }: MintDeps,
  maker: Principal,
  tenantId: string,
  { name, scopes = [], expiresAt }: ApiKeyCreate,
): Minted {
  if (!mayMint(maker.scopes, scopes)) {
    const missing = scopes.find(scope => !mayMint(maker.scopes, [scope])) ?? 'admin'
    throw new ApiError('forbidden_scope', `a key can mint only scopes that it holds, and this one lacks ${missing}`)
  }
  const createdMs = now().getTime()
  const expiresMs = expiresAt === undefined ? maker.expiresMs : Date.parse(expiresAt)
  if (expiresMs !== undefined && expiresMs <= createdMs) throw badEnd('expected a time in the future')
  if (maker.expiresMs !== undefined && expiresMs !== undefined && expiresMs > maker.expiresMs) {
    throw badEnd(
      `the key that asks ends at ${new Date(maker.expiresMs).toISOString()}: give that time or an earlier one`,
    )
  }
  return makeKey(store, {
    id: newId(),
    tenantId,
    name,
    scopes: [...new Set(scopes)],
    createdMs,
    createdBy: maker.keyId,
    expiresMs,
  })
}

const badEnd = (message: string) =>
  new ApiError('validation_failed', `expiresAt: ${message}`, { details: [{ path: 'expiresAt', message }] })

/** A key is revoked by who could have minted it, and by itself. */
export function checkRevocation({ keyId, scopes }: Principal, key: Pick<NewKey, 'id' | 'scopes'>): void {
  if (key.id === keyId || mayMint(scopes, key.scopes)) return
  const missing = key.scopes.find(scope => !mayMint(scopes, [scope])) ?? 'admin'
  throw new ApiError(
    'forbidden_scope',
    `the key to revoke holds ${missing}, and this one does not: ask with a key that does`,
  )
}

/** A key for an authorised person; the caller has checked that. */
export function makeKey(
  store: KeyStore,
  key: Omit<NewKey, 'hash' | 'prefix'>,
  when: { ifAuthor?: boolean } = {},
): Minted {
  const rawKey = newApiKey()
  const made = { ...key, scopes: [...key.scopes], prefix: prefixOf(rawKey) }
  const row = { ...made, revokedMs: undefined, usedMs: undefined }
  return {
    id: key.id,
    statement: store.insert({ ...made, hash: hashKey(rawKey) }, when),
    answer: { key: toApiKey(row, key.createdMs), rawKey },
  }
}

/** The answer that created a key, without the key itself: that was shown once. */
export async function keyWithoutSecret(store: KeyStore, id: string, now: Date): Promise<ApiKeyCreated> {
  const key = await store.get(id)
  if (key === undefined) throw notFound('API key', id)
  return { key: toApiKey(key, now.getTime()), rawKey: '***' }
}
