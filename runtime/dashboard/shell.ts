import type { Context } from 'hono'
import { html } from 'hono/html'
import { ICON_SPRITE, icon } from '../../shared/browser/icons.ts'
import { MENU, TYPEFACE } from '../../shared/browser/menu.ts'
import { VERSION } from '../../shared/version.ts'
import type { User } from '../../shared/wire/runtime/auth.ts'
import type { Html, Shown } from './page.ts'

export interface ShellOptions {
  title: string
  root: string
  scripts: readonly string[]
  body: Shown
  /** Who is logged in; absent on the pages before a login. */
  person?: { user: User; csrfToken: string }
  menu?: Html
  /** Of the menu and the body: what an open page asks by, whether there is something else by now. */
  etag?: string
  theme?: Theme | undefined
}

export type Theme = 'light' | 'dark'

/** What goes on now, beside the entries that lead there. */
export interface MenuCounts {
  running: number
  approvals: number
  /** Of the last hour. */
  failed: number
}

/** Every page's frame. Addresses are relative, so that it works under whatever path a proxy puts the runtime. */
export function shell({ title, root, scripts, body, person, menu, etag, theme }: ShellOptions): Html {
  return html`<!doctype html>
<html lang="en" data-root="${root}"${theme === undefined ? '' : html` data-theme="${theme}"`} data-csrf="${person?.csrfToken ?? ''}"${person === undefined ? '' : html` data-tenant="${person.user.tenantId}" data-user="${person.user.id}"`}${etag === undefined ? '' : html` data-etag="${etag}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Waybill</title>
<link rel="icon" href="${root}ui/files/icon.svg">
<link rel="preload" href="${root}ui/files/${TYPEFACE}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${root}ui/files/base.css">
<link rel="stylesheet" href="${root}ui/files/shell.css">
<link rel="stylesheet" href="${root}ui/files/dashboard.css">
<link rel="stylesheet" href="${root}ui/files/figures.css">
<noscript><link rel="stylesheet" href="${root}ui/files/no-script.css"></noscript>
${scripts.map(name => html`<script type="module" src="${root}ui/files/${name}"></script>\n`)}
</head>
<body${person === undefined ? '' : html` data-role="${person.user.role}"`}>
${person === undefined ? '' : html`${top(root, person)}${menu ?? ''}`}
${ICON_SPRITE}
<main id="main" tabindex="-1">
${person === undefined ? '' : html`<noscript><p class="notice">Everything can be read without JavaScript; changing something needs JavaScript.</p></noscript>`}
${body}
</main>
<div id="toast" role="status"></div>
${scripts.length === 0 ? '' : LOGIN_AGAIN}
</body>
</html>`
}

function top(root: string, { user, csrfToken }: NonNullable<ShellOptions['person']>): Html {
  return html`<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="${root}"><img src="${root}ui/files/icon.svg" alt="" width="24" height="24"> Waybill <small>${VERSION}</small></a>
<span id="live" class="live" role="status"></span>
<button type="button" id="open-palette" class="needs-script" aria-haspopup="dialog">Go to … <kbd>Ctrl K</kbd></button>
<form class="who" method="post" action="${root}logout"><input type="hidden" name="csrf" value="${csrfToken}">
<label class="unpadded needs-script"><span class="unseen">Colours</span><select id="theme"><option value="">System colours</option><option value="light">Light</option><option value="dark">Dark</option></select></label>
<span class="whose">${user.name} <small>${user.role}</small></span> <button>Log out</button></form>
</header>`
}

export function menuOf(root: string, menu: string, router: string | undefined, counts: MenuCounts | undefined): Html {
  const count = (number: number, words: string, look = ''): Shown =>
    number === 0
      ? ''
      : html`<span class="count ${look}" title="${number} ${words}">${number}<span class="unseen"> ${words}</span></span>`
  const marks: Record<string, Shown> = {
    Runs: [count(counts?.running ?? 0, 'running'), count(counts?.failed ?? 0, 'failed in the last hour', 'bad')],
    Approvals: count(counts?.approvals ?? 0, 'pending', 'warn'),
  }
  return html`<nav id="menu" aria-label="Pages" data-live><ul>
${MENU.map(entry => html`<li><a href="${root}${entry.href}"${entry.name === menu ? html` aria-current="page"` : ''}>${icon(entry.icon)}<span>${entry.name}</span>${marks[entry.name] ?? ''}</a></li>`)}
${router === undefined ? html`<li class="apart">No router here</li>` : html`<li><a href="${router}">${icon('router')}<span>Router</span></a></li>`}
</ul></nav>`
}

/** A login that expired while the reader was typing: the text stays where it is, behind this. */
const LOGIN_AGAIN = html`<dialog id="login-again" aria-labelledby="login-again-title">
<form method="dialog">
<h2 id="login-again-title">Your session has expired</h2>
<p>Log in again, and what you were doing goes on. Nothing that you typed is lost.</p>
<label>E-mail <input name="email" type="email" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<p role="alert" class="bad"></p>
<div class="row"><button class="main">Log in</button> <button type="button" value="later">Not now</button></div>
</form></dialog>`

/**
 * Nothing but this service's own files runs, and no text becomes markup but the pages that the service itself made: the browser refuses
 * it, whatever a module does. Frames are refused because a page in one could be clicked without being seen.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types waybill-pages"

export function guard(c: Context): void {
  c.header('content-security-policy', POLICY)
  c.header('x-content-type-options', 'nosniff')
  c.header('referrer-policy', 'same-origin')
  c.header('cache-control', 'no-store')
}

/** For what pages load. Their policy is the page's; only a picture can be opened as a document of its own. */
export function guardFile(c: Context): void {
  if (c.req.path.endsWith('.svg')) c.header('content-security-policy', POLICY)
  c.header('x-content-type-options', 'nosniff')
}

/** How a page names the folder that the dashboard stands in, from where it stands itself. */
export function rootOf(c: Context): string {
  return '../'.repeat(c.req.path.split('/').length - 2) || './'
}
