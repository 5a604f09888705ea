import { Hono } from 'hono'
import { jsonBody } from '../../../shared/http/validate.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { type ApiKeyCreated, apiKeyCreate } from '../../../shared/wire/runtime/auth.ts'
import { pageQuery } from '../../../shared/wire/runtime/conventions.ts'
import type { RuntimeHttpEnv } from '../../http/http-env.ts'
import type { Idempotent } from '../../http/idempotent.ts'
import { own } from '../../http/own-tenant.ts'
import { pageOf } from '../../http/page.ts'
import { readQuery } from '../../http/read-query.ts'
import type { KeyAccess } from './key-access.ts'
import { checkRevocation, keyAgain, mintKey } from './mint.ts'
import { type KeyStore, toApiKey } from './store.ts'

export interface KeysDeps {
  db: Db
  keys: KeyStore
  keyAccess: KeyAccess
  idempotent: Idempotent
  now: () => Date
  newId: () => string
  maxBodyBytes: number
}

/** API keys of the caller's tenant (docs/spec/runtime.md §13). */
export function keysRoute({ db, keys, keyAccess, idempotent, now, newId, maxBodyBytes }: KeysDeps) {
  return new Hono<RuntimeHttpEnv>()
    .get('/v1/api-keys', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      await keyAccess.flush()
      const rows = await keys.list(c.get('principal').tenantId, page)
      const nowMs = now().getTime()
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(row => toApiKey(row, nowMs)))
    })
    .post(
      '/v1/api-keys',
      jsonBody(apiKeyCreate, maxBodyBytes),
      idempotent({ oneTime: ['rawKey'], again: async (c, id) => c.json(await keyAgain(keys, id, now()), 201) }),
      async c => {
        const principal = c.get('principal')
        const { id, statement, answer } = mintKey(
          { store: keys, now, newId },
          principal,
          principal.tenantId,
          c.req.valid('json'),
        )
        const bind = c.get('idempotency')?.statement(id)
        await db.write([statement, ...(bind ? [bind] : [])])
        return c.json(answer satisfies ApiKeyCreated, 201)
      },
    )
    .delete('/v1/api-keys/:id', async c => {
      const id = c.req.param('id')
      const key = own(c.get('principal'), await keys.get(id), 'API key', id)
      checkRevocation(c.get('principal'), key)
      await keys.revoke(key.id, now().getTime())
      keyAccess.revoked(key.id)
      return c.body(null, 204)
    })
}
