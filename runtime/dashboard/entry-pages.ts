import type { Context, NotFoundHandler } from 'hono'
import { html } from 'hono/html'
import { wantsHtml } from '../../shared/http/wants-html.ts'
import type { Html } from './page.ts'
import { guard, rootOf, shell } from './shell.ts'

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

/** The page behind a link with which a person sets their password, the first time or after they forgot it. */
export function invitePage(root: string): Html {
  return html`<div class="card before"><h1>Set your password</h1>
<noscript><p class="notice">This needs JavaScript: the token in the link stays in your browser until you send it.</p></noscript>
<form id="invite" class="needs-script" method="post">
<p>The operator of this installation sent you a link that is valid once.</p>
<label>Password, at least 12 characters <input name="password" type="password" required minlength="12" maxlength="256" autocomplete="new-password"></label>
<label>The same again <input name="again" type="password" required autocomplete="new-password"></label>
<button class="main">Set it and log in</button>
</form>
<p id="said" role="status"></p>
<p><a href="${root}login">Log in</a> if you have a password already.</p></div>`
}

/** The page behind the setup link: the owner, the first key, and a first run to look at. */
export function setupPage(root: string, { hasOwner, takesKey }: { hasOwner: boolean; takesKey: boolean }): Html {
  if (hasOwner) {
    return html`<div class="card before"><h1>Waybill is set up</h1>
<p>This installation already has an owner.</p><p><a href="${root}login">Log in</a></p></div>`
  }
  return html`<div class="card before"><h1>Set up Waybill</h1>
<noscript><p class="notice">Setup needs JavaScript: the token in the link stays in your browser until you send it.</p></noscript>
<form id="setup" class="needs-script" method="post">
<p>You become the owner of this installation.</p>
<label>Name <input name="name" required maxlength="128" autocomplete="name"></label>
<label>E-mail <input name="email" type="email" required autocomplete="username"></label>
<label>Password, at least 12 characters <input name="password" type="password" required minlength="12" maxlength="256" autocomplete="new-password"></label>
${takesKey ? html`<label id="bootstrap" hidden>PLATFORM_BOOTSTRAP_KEY of the runtime <input name="bootstrapKey" type="password" autocomplete="off"></label>` : ''}
<button class="main">Create the owner</button>
</form>
<p id="no-link" class="notice" hidden>Open the setup link that the runtime printed when it started: it ends in <code>/setup#token=…</code> and is valid for an hour. Restart the runtime for a new one.</p>
<p id="said" role="status"></p>
<section id="done" hidden>
<h2 tabindex="-1">You are the owner, and logged in</h2>
<div id="first-key"></div>
<h2>See a run</h2>
<p>The demo agent asks no provider and costs nothing. It waits twice and answers.</p>
<button id="demo-run" type="button" class="main">Run the demo agent</button>
<div id="demo-shown"></div>
<p><a href="${root}">Go to the dashboard</a></p>
</section></div>`
}

/** What a browser gets where there is nothing, and a program gets from `otherwise`. */
export function answerUnknownPage(otherwise: NotFoundHandler): NotFoundHandler {
  return (c: Context) => {
    if (!wantsHtml(c.req.raw)) return otherwise(c)
    const root = rootOf(c)
    guard(c)
    const body = html`<div class="card before"><h1>There is no such page</h1><p>Nothing is at <code>${c.req.path.slice(0, 200)}</code>.</p>
<p><a class="button main" href="${root}">Overview</a> <a class="button" href="${root}runs">Runs</a> <a class="button" href="${root}docs">API reference</a></p></div>`
    return c.html(shell({ title: 'Not found', root, scripts: [], body }), 404)
  }
}
