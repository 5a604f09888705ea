import type { Db } from '../../../shared/sql/db.ts'
import { accessEndpoints as endpoints } from '../../../shared/wire/runtime/endpoints/access.ts'
import { keyedOperation, type Operation, operation } from '../../http/operation.ts'
import { own } from '../../http/own-tenant.ts'
import { pageOf } from '../../http/page.ts'
import type { KeyAccess } from './key-access.ts'
import { checkRevocation, keyWithoutSecret, mintKey } from './mint.ts'
import { type KeyStore, toApiKey } from './store.ts'

export interface KeysDeps {
  db: Db
  keys: KeyStore
  keyAccess: KeyAccess
  now: () => Date
  newId: () => string
}

/** API keys of the caller's tenant (docs/spec/runtime.md §13). */
export function keyOperations({ db, keys, keyAccess, now, newId }: KeysDeps): Operation[] {
  return [
    operation(endpoints.keys, async call => {
      const page = pageOf(call)
      await keyAccess.flush()
      const rows = await keys.list(call.principal.tenantId, page)
      const nowMs = now().getTime()
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(row => toApiKey(row, nowMs))
    }),
    keyedOperation(
      endpoints.createKey,
      async ({ principal, body, idempotency }) => {
        const { id, statement, answer } = mintKey({ store: keys, now, newId }, principal, principal.tenantId, body)
        await db.write([statement, ...idempotency.bind(id)])
        return answer
      },
      { oneTime: ['rawKey'], again: (_, id) => keyWithoutSecret(keys, id, now()) },
    ),
    operation(endpoints.revokeKey, async ({ principal, params: { id } }) => {
      const key = own(principal, await keys.get(id), 'API key', id)
      checkRevocation(principal, key)
      await keys.revoke(key.id, now().getTime())
      keyAccess.revoked(key.id)
    }),
  ]
}
