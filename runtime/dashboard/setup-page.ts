import { html } from 'hono/html'
import type { Html } from './page.ts'

/** The page behind the setup link: the owner, the first key, and a first run to look at. */
export function setupPage(root: string, hasOwner: boolean): Html {
  if (hasOwner) {
    return html`<div class="card before"><h1>Waybill is set up</h1>
<p>This installation has its owner.</p><p><a href="${root}login">Log in</a></p></div>`
  }
  return html`<div class="card before"><h1>Set up Waybill</h1>
<noscript><p class="notice">Setting up takes JavaScript: the token in the link stays in your browser until you send it.</p></noscript>
<form id="setup" class="needs-script" method="post">
<p>You become the owner of this installation.</p>
<label>Name <input name="name" required maxlength="128" autocomplete="name"></label>
<label>E-mail <input name="email" type="email" required autocomplete="username"></label>
<label>Password, at least 12 characters <input name="password" type="password" required minlength="12" maxlength="256" autocomplete="new-password"></label>
<button class="main">Create the owner</button>
<p class="hint">The runtime prints a link with a token when it starts and has no owner. It prints none while PLATFORM_BOOTSTRAP_KEY is set: start it
once without.</p>
</form>
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
