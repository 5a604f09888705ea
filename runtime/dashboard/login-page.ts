import { html } from 'hono/html'
import type { Html } from './page.ts'

interface LoginPage {
  root: string
  csrf: string
  next: string
  email: string
  problem?: string | undefined
}

/** A plain form: it works without a script, and nothing of it is kept when it is refused but the address. */
export function loginPage({ root, csrf, next, email, problem }: LoginPage): Html {
  return html`<div class="card before"><h1>Log in to Waybill</h1>
${problem === undefined ? '' : html`<p class="notice bad" role="alert">${problem}</p>`}
<form method="post" action="${root}login">
<input type="hidden" name="csrf" value="${csrf}"><input type="hidden" name="next" value="${next}">
<label>E-mail <input name="email" type="email" value="${email}" required autocomplete="username"${email === '' ? html` autofocus` : ''}></label>
<label>Password <input name="password" type="password" required autocomplete="current-password"></label>
<button class="main">Log in</button></form></div>`
}
