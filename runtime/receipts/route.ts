import type { Context } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { ProofTextError, readProofBytes } from '../../shared/proof/read-proof.ts'
import { receiptEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/receipts.ts'
import type { VerifyRequest, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { newToken } from '../auth/dashboard/login-access.ts'
import { bearerKey } from '../auth/keys/api-key.ts'
import type { KeyAccess } from '../auth/keys/key-access.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { ReceiptService } from './service.ts'
import { verifierPage } from './verifier-page.ts'

export interface ReceiptsDeps {
  service: ReceiptService
  keyAccess: Pick<KeyAccess, 'principalOf'>
}

/** Receipts: read one, verify one (docs/spec/proof.md). */
export function receiptOperations({ service }: ReceiptsDeps): Operation[] {
  return [
    operation(endpoints.get, ({ principal, params }) => service.get(principal, params.id)),
    operation(endpoints.issue, ({ principal, params }) => service.get(principal, params.id)),
    operation(
      endpoints.verify,
      ({ principal, body, bytes }) => ambiguity(bytes) ?? service.verify(body, principal.tenantId),
    ),
  ]
}

/** What any holder of a receipt may ask: the keys, and whether this service signed it. */
export function publicReceiptOperations({ service, keyAccess }: ReceiptsDeps): Operation[] {
  async function tenantOf(context: Context): Promise<string | undefined> {
    const header = context.req.header('authorization')
    if (header === undefined) return undefined
    const key = bearerKey(header)
    const principal = key === undefined ? undefined : await keyAccess.principalOf(key)
    if (!principal) throw new ApiError('unauthorized', 'the API key is not valid: leave it out, or send a good one')
    return principal.tenantId
  }

  async function verify(body: VerifyRequest, tenantId: string | undefined): Promise<VerifyResult> {
    const { tenantId: _, ...result } = await service.verify(body, tenantId)
    return result
  }

  return [
    operation(endpoints.keys, async ({ context }) => {
      context.header('access-control-allow-origin', '*')
      context.header('cache-control', 'public, max-age=300')
      return service.published()
    }),
    operation(endpoints.verifyPage, ({ context }) => {
      const nonce = newToken()
      const own = `script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'`
      context.header(
        'content-security-policy',
        `default-src 'none'; ${own}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
      )
      context.header('cache-control', 'no-store')
      return context.html(verifierPage(nonce))
    }),
    operation(endpoints.verifyPublic, async ({ context, body, bytes }) => {
      const problem = ambiguity(bytes)
      const tenantId = await tenantOf(context)
      return problem ?? verify(body, tenantId)
    }),
  ]
}

/** The verdict on a proof whose text says two things; undefined for one that says one. */
function ambiguity(bytes: Uint8Array): VerifyResult | undefined {
  try {
    readProofBytes(bytes)
    return undefined
  } catch (error) {
    if (!(error instanceof ProofTextError) || error.reason === 'not_json') throw error
    const checks = { signature: 'not_checked', journal: 'not_checked', record: 'not_checked' } as const
    return { valid: false, reason: error.reason, checks }
  }
}
