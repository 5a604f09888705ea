import { type Context, Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import { emptyBody } from '../../shared/wire/runtime/conventions.ts'
import { type VerifyResult, verifyRequest } from '../../shared/wire/runtime/receipt.ts'
import { newToken } from '../auth/dashboard/login-access.ts'
import type { RuntimeHttpEnv } from '../auth/http-env.ts'
import { bearerKey } from '../auth/keys/api-key.ts'
import type { ReceiptsDeps } from './deps.ts'
import { verifierPage } from './verifier-page.ts'

/** Receipts: read one, verify one (contract §11). */
export function receiptsRoute({ service, maxBodyBytes }: ReceiptsDeps) {
  return new Hono<RuntimeHttpEnv>()
    .get('/v1/runs/:id/receipt', async c => c.json(await service.get(c.get('principal'), c.req.param('id'))))
    .post('/v1/runs/:id/receipt', jsonBody(emptyBody, maxBodyBytes), async c =>
      c.json(await service.get(c.get('principal'), c.req.param('id'))),
    )
    .post('/v1/runs/receipts/verify', jsonBody(verifyRequest, maxBodyBytes), async c =>
      c.json(await service.verify(c.req.valid('json'), c.get('principal').tenantId)),
    )
}

/** What anybody may ask who holds a receipt: the keys, and whether it is one of ours. */
export function publicReceiptsRoute({ service, keyAccess, maxBodyBytes }: ReceiptsDeps) {
  async function tenantOf(c: Context<RuntimeHttpEnv>): Promise<string | undefined> {
    const header = c.req.header('authorization')
    if (header === undefined) return undefined
    const key = bearerKey(header)
    const principal = key === undefined ? undefined : await keyAccess.principalOf(key)
    if (!principal) throw new ApiError('unauthorized', 'the API key is not valid: leave it out, or send a good one')
    return principal.tenantId
  }

  return new Hono<RuntimeHttpEnv>()
    .get('/.well-known/platform-receipts', async c => {
      c.header('access-control-allow-origin', '*')
      c.header('cache-control', 'public, max-age=300')
      return c.json(await service.published())
    })
    .get('/receipts/verify', c => {
      const nonce = newToken()
      const own = `script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'`
      c.header(
        'content-security-policy',
        `default-src 'none'; ${own}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
      )
      c.header('cache-control', 'no-store')
      return c.html(verifierPage(nonce))
    })
    .post('/receipts/verify', jsonBody(verifyRequest, maxBodyBytes), async c => {
      const { tenantId: _, ...result } = await service.verify(c.req.valid('json'), await tenantOf(c))
      return c.json(result satisfies VerifyResult)
    })
}
