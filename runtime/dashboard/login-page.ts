import { html } from 'hono/html'
import type { Html } from './page.ts'

interface LoginPage {
  root: string
  csrf: string
  next: string
  email: string
  problem?: string | undefined
  /** What the e-mail and the password fit, where that is more than one. */
  tenants?: readonly { id: string; name: string }[] | undefined
}

/** A plain form: it works without a script, and nothing of it is kept when it is refused but the address. */
export function loginPage({ root, csrf, next, email, problem, tenants = [] }: LoginPage): Html {
  return html`<div class="card before"><h1>Log in to Waybill</h1>
${problem === undefined ? '' : html`<p class="notice bad" role="alert">${problem}</p>`}
<form method="post" action="${root}login">
<input type="hidden" name="csrf" value="${csrf}"><input type="hidden" name="next" value="${next}">
<label>E-mail <input name="email" type="email" value="${email}" required autocomplete="username"${email === '' ? html` autofocus` : ''}></label>
<label>Password <input name="password" type="password" required autocomplete="current-password"${email === '' ? '' : html` autofocus`}></label>
${tenants.length === 0 ? '' : html`<fieldset><legend>Workspace</legend>${tenants.map(({ id, name }, at) => html`<label><input name="tenantId" type="radio" value="${id}" required${at === 0 ? html` checked` : ''}> ${name}</label>`)}</fieldset>`}
<button class="main">Log in</button></form></div>`
}
