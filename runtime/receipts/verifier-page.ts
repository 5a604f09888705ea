import { html, raw } from 'hono/html'
import { verifierFiles } from './verifier.gen.ts'

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
export function verifierPage(nonce: string) {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Verify a receipt</title>
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
