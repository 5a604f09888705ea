import { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { newToken } from './login-access.ts'

/** Reads the token behind the `#` of the setup link and sends it with what the form asks for. */
const SCRIPT = `
const form = document.querySelector('form'), said = document.querySelector('output')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
if (!token) said.textContent = 'Open the whole setup link that the runtime printed: its token is missing here.'
form.addEventListener('submit', async event => {
  event.preventDefault()
  const { name, email, password } = Object.fromEntries(new FormData(form))
  said.textContent = 'One moment …'
  const answer = await fetch('/auth/setup', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, name, email, password }),
  }).catch(() => undefined)
  const body = await answer?.json()
  if (!answer?.ok) { said.textContent = body?.error ?? 'The runtime does not answer: is it running?'; return }
  history.replaceState(null, '', location.pathname)
  form.remove()
  said.textContent = 'Done. This is your first API key; it is shown once:\\n' + body.rawKey
})`

/** The page behind the setup link. It is plain HTML: there is nobody yet who could log in to the dashboard. */
export function setupPage() {
  return new Hono().get('/setup', c => {
    const nonce = newToken()
    c.header(
      'content-security-policy',
      `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    )
    c.header('referrer-policy', 'no-referrer')
    c.header('cache-control', 'no-store')
    return c.html(html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Set up Waybill</title>
<style nonce="${nonce}">
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 4rem auto; padding: 0 1rem }
label { display: block; margin-top: 1rem }
input { width: 100%; box-sizing: border-box; padding: .5rem; font: inherit }
button { margin-top: 1.5rem; padding: .5rem 1.5rem; font: inherit }
output { display: block; margin-top: 1.5rem; white-space: pre-wrap; overflow-wrap: anywhere }
</style>
<h1>Set up Waybill</h1>
<p>You become the owner of this installation.</p>
<form>
<label>Name <input name="name" required maxlength="128" autocomplete="name"></label>
<label>E-mail <input name="email" type="email" required autocomplete="username"></label>
<label>Password, at least 12 characters <input name="password" type="password" required minlength="12" maxlength="256" autocomplete="new-password"></label>
<button>Create the owner</button>
</form>
<output aria-live="polite"></output>
<script nonce="${nonce}">${raw(SCRIPT)}</script>
</html>`)
  })
}
