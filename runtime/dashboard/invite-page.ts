import { html } from 'hono/html'
import type { Html } from './page.ts'

/** The page behind a link with which a person sets their password, the first time or after they forgot it. */
export function invitePage(root: string): Html {
  return html`<div class="card before"><h1>Set your password</h1>
<noscript><p class="notice">This takes JavaScript: the token in the link stays in your browser until you send it.</p></noscript>
<form id="invite" class="needs-script" method="post">
<p>The operator of this installation sent you a link that is valid once.</p>
<label>Password, at least 12 characters <input name="password" type="password" required minlength="12" maxlength="256" autocomplete="new-password"></label>
<label>The same again <input name="again" type="password" required autocomplete="new-password"></label>
<button class="main">Set it and log in</button>
</form>
<p id="said" role="status"></p>
<p><a href="${root}login">Log in</a> if you have a password already.</p></div>`
}
