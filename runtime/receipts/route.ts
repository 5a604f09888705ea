import type { Context } from 'hono'
import { html, raw } from 'hono/html'
import { ApiError } from '../../shared/http/api-error.ts'
import { ProofTextError, readProofBytes } from '../../shared/proof/read-proof.ts'
import { receiptEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/receipts.ts'
import type { VerifyRequest, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { newToken } from '../auth/dashboard/login-access.ts'
import { bearerKey, type KeyAccess } from '../auth/keys/key-access.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { ReceiptService } from './service.ts'
import { verifierFiles } from './verifier.gen.ts'

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
        `default-src 'none'; ${own}; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
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

const STYLE = `
:root { color-scheme: light dark; --good: light-dark(#0a5c2b, #7ddc9f); --bad: light-dark(#a31515, #ff9c94) }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
label { display: block; margin-top: 1rem; font-weight: 600 }
textarea, input { width: 100%; box-sizing: border-box; padding: .5rem; font: .875rem ui-monospace, monospace }
input[type=file] { padding: .25rem 0; font: inherit }
button { margin-top: 1.5rem; padding: .5rem 1.5rem; font: inherit }
output { display: block; margin-top: 1.5rem; font-weight: 600; overflow-wrap: anywhere }
.valid { color: var(--good) }
.invalid { color: var(--bad) }`

/**
 * What the verifier page runs: its modules as one script, since a page that was saved has no files beside it. In a strict block two modules
 * with one name are refused.
 */
const VERIFIER_SCRIPT = `'use strict';{${Object.entries(verifierFiles)
  // The form begins to act as it is read.
  .sort(([a], [b]) => Number(a === 'verifier-form.js') - Number(b === 'verifier-form.js'))
  .map(([, text]) => text.replace(/^import [^']* from '[^']*'$/gm, '').replace(/^export /gm, ''))
  .join('\n')}}`

/** One file that checks receipts: saved to a disk it works the same, with no server and no network. */
function verifierPage(nonce: string) {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Verify a receipt</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${raw(STYLE)}</style>
<h1>Verify a receipt</h1>
<p>Everything is checked in this page; nothing is sent anywhere. Save the page, and it works without a network.</p>
<form>
<label for="fingerprint">Fingerprint of the signer</label>
<input id="fingerprint" name="fingerprint" required autocomplete="off" spellcheck="false" placeholder="keyFingerprint of /.well-known/platform-receipts, kept by you">
<label for="receipt">Receipt</label>
<input type="file" accept=".json,application/json" data-for="receipt" aria-label="Receipt from a file">
<textarea id="receipt" name="receipt" rows="6" required spellcheck="false"></textarea>
<label for="journal">Journal of the run, if you have it</label>
<input type="file" accept=".json,application/json" data-for="journal" aria-label="Journal from a file">
<textarea id="journal" name="journal" rows="6" spellcheck="false"></textarea>
<button>Verify</button>
</form>
<output aria-live="polite"></output>
<script nonce="${nonce}">${raw(VERIFIER_SCRIPT)}</script>
</html>`
}
