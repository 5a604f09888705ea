import { type Context, Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody, jsonBytes, readBodyAs } from '../../shared/http/validate.ts'
import { ProofTextError, readProofBytes } from '../../shared/proof/read-proof.ts'
import { emptyBody } from '../../shared/wire/runtime/conventions.ts'
import { type VerifyRequest, type VerifyResult, verifyRequest } from '../../shared/wire/runtime/receipt.ts'
import { newToken } from '../auth/dashboard/login-access.ts'
import { bearerKey } from '../auth/keys/api-key.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import type { ReceiptsDeps } from './deps.ts'
import { verifierPage } from './verifier-page.ts'

/** Receipts: read one, verify one (docs/spec/proof.md). */
export function receiptsRoute({ service, maxBodyBytes }: ReceiptsDeps) {
  return new Hono<RuntimeHttpEnv>()
    .get('/v1/runs/:id/receipt', async c => c.json(await service.get(c.get('principal'), c.req.param('id'))))
    .post('/v1/runs/:id/receipt', jsonBody(emptyBody, maxBodyBytes), async c =>
      c.json(await service.get(c.get('principal'), c.req.param('id'))),
    )
    .post('/v1/runs/receipts/verify', async c => {
      const read = await readRequest(c, maxBodyBytes)
      return c.json('valid' in read ? read : await service.verify(read, c.get('principal').tenantId))
    })
}

/** What any holder of a receipt may ask: the keys, and whether this service signed it. */
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
    .post('/receipts/verify', async c => {
      const read = await readRequest(c, maxBodyBytes)
      const tenantId = await tenantOf(c)
      const { tenantId: _, ...result } = 'valid' in read ? read : await service.verify(read, tenantId)
      return c.json(result satisfies VerifyResult)
    })
}

/** What is to be verified, or the verdict on a text that says two things. */
async function readRequest(c: Context, maxBytes: number): Promise<VerifyRequest | VerifyResult> {
  const bytes = await jsonBytes(c.req.raw, maxBytes)
  const request = readBodyAs(verifyRequest, bytes)
  try {
    readProofBytes(bytes)
  } catch (error) {
    if (!(error instanceof ProofTextError) || error.reason === 'not_json') throw error
    const checks = { signature: 'not_checked', journal: 'not_checked', record: 'not_checked' } as const
    return { valid: false, reason: error.reason, checks }
  }
  return request
}
