import { Hono } from 'hono'
import { getCookie } from 'hono/cookie'
import { html } from 'hono/html'
import { ICON_SPRITE, icon } from '../../shared/browser/icons.ts'
import { MENU, TYPEFACE } from '../../shared/browser/menu.ts'
import { browserFiles } from '../../shared/http/browser-files.ts'
import { VERSION } from '../../shared/version.ts'
import { modes } from '../../shared/wire/router/conventions.ts'
import { servedFrom } from '../../shared/wire/router/trace.ts'
import { PANEL_POLICY } from './policy.ts'

/** `/panel` and the files that it loads. The page holds no data, so it needs no key; what it shows it asks the API for. */
export function panelRoute(dashboard: () => string | undefined) {
  const load = async () => (await import('./files.gen.ts')).panelFiles
  const files = browserFiles({ load, gzip: packed })
  return new Hono()
    .use('/panel/*', async (c, next) => {
      await next()
      c.header('content-security-policy', PANEL_POLICY)
      c.header('x-content-type-options', 'nosniff')
      c.header('referrer-policy', 'no-referrer')
    })
    .get('/panel', async c => {
      // Of this name, whatever the port: the choice that was made in the dashboard holds here.
      const chosen = getCookie(c, 'wb_theme')
      c.header('cache-control', 'no-cache')
      const theme = chosen === 'light' || chosen === 'dark' ? chosen : undefined
      return c.html(panelPage(Object.keys(await load()), { dashboard: dashboard(), theme }))
    })
    .get('/panel/:file', c => files(c, c.req.param('file')))
}

/** Of what every host has, since the panel is served by all of them. */
async function packed(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

interface PanelFrame {
  /** Where people reach the dashboard of the runtime in the same process; undefined where there is none. */
  dashboard: string | undefined
  theme: 'light' | 'dark' | undefined
}

/** The parts of the page, below its entry in the menu. */
const PARTS: readonly [id: string, words: string][] = [
  ['health', 'Is it well?'],
  ['providers', 'Providers'],
  ['savings', 'Savings'],
  ['routes', 'Routes'],
  ['ladder', 'Ladder'],
  ['gates', 'Gates'],
  ['calibration', 'Calibration'],
  ['chain', 'Chain'],
  ['traces', 'Traces'],
]

function menu(dashboard: string | undefined) {
  const pages =
    dashboard === undefined
      ? html`<li class="apart">No dashboard here</li>`
      : MENU.map(
          entry =>
            html`<li><a href="${dashboard}/${entry.href}">${icon(entry.icon)}<span>${entry.name}</span></a></li>`,
        )
  return html`<nav id="menu" aria-label="Pages"><ul>${pages}<li><a href="panel" aria-current="page">${icon('router')}<span>Router</span></a></li>
${PARTS.map(([id, words]) => html`<li><a class="within" href="#${id}">${words}</a></li>`)}</ul></nav>`
}

/** The page without data. Addresses are relative, so that it works under whatever path a proxy puts the router. */
function panelPage(files: readonly string[], { dashboard, theme }: PanelFrame) {
  const scripts = files.filter(name => name.endsWith('.js'))
  return html`<!doctype html>
<html lang="en"${theme === undefined ? '' : html` data-theme="${theme}"`}${dashboard === undefined ? '' : html` data-dashboard="${dashboard}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Waybill router</title>
<link rel="icon" href="panel/icon.svg">
<link rel="preload" href="panel/${TYPEFACE}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="panel/base.css">
<link rel="stylesheet" href="panel/shell.css">
<link rel="stylesheet" href="panel/panel.css">
${scripts.map(name => html`<link rel="modulepreload" href="panel/${name}">`)}
<script type="module" src="panel/panel.js"></script>
</head>
<body>
<a class="skip" href="#traces">Skip to the traces</a>
<header class="top">
<a class="brand" href="${dashboard === undefined ? 'panel' : `${dashboard}/`}"><img src="panel/icon.svg" alt="" width="24" height="24"> Waybill <small>${VERSION}</small></a>
<span id="live" class="live" role="status"></span>
<label class="unpadded"><span class="unseen">Colours</span><select id="theme"><option value="">System colours</option><option value="light">Light</option><option value="dark">Dark</option></select></label>
</header>
${menu(dashboard)}
${ICON_SPRITE}
<main>
<div class="between wide title">
<h1>Router</h1>
<div class="tools">
<label>Figures of <select id="window">
<option value="7">the last 7 days</option>
<option value="30" selected>the last 30 days</option>
<option value="90">the last 90 days</option>
<option value="">all time</option>
</select></label>
<button id="reload" type="button">Reload</button>
<button id="change-key" type="button">Key …</button>
</div>
</div>
<noscript><p class="notice">This page reads the router's API from your browser, which needs JavaScript.</p></noscript>
<form id="key" class="notice" hidden>
<p id="key-reason" role="alert"></p>
<label for="key-text">Router key (the secret of an entry of ROUTER_KEYS)</label>
<div class="row"><input id="key-text" type="password" autocomplete="off" spellcheck="false">
<button>Use this key</button> <button id="forget-key" type="button">Forget it</button></div>
<p class="hint">It stays in this tab until you close it and is sent to this router only, as x-router-key.</p>
</form>
<p id="problem" class="notice bad" role="alert" hidden></p>
<section id="empty" class="notice" hidden></section>
<section id="health" class="card wide" aria-labelledby="health-title"><h2 id="health-title">Is it well?</h2><div class="body"></div></section>
<section id="providers" class="card wide" aria-labelledby="providers-title"><h2 id="providers-title">Providers</h2><div class="body"></div></section>
<section id="savings" class="card wide" aria-labelledby="savings-title"><h2 id="savings-title">Savings over time</h2><div class="body"></div></section>
<section id="routes" class="card wide" aria-labelledby="routes-title"><h2 id="routes-title">Rungs by route</h2><div class="body"></div></section>
<section id="ladder" class="card" aria-labelledby="ladder-title"><h2 id="ladder-title">Ladder</h2><div class="body"></div></section>
<section id="gates" class="card" aria-labelledby="gates-title"><h2 id="gates-title">Gates</h2><div class="body"></div></section>
<section id="calibration" class="card" aria-labelledby="calibration-title"><h2 id="calibration-title">Calibration</h2><div class="body"></div></section>
<section id="chain" class="card" aria-labelledby="chain-title"><h2 id="chain-title">Chain</h2>
<div class="row"><button id="verify" type="button">Verify in this browser</button> <button id="stop-verify" type="button" hidden>Stop</button></div>
<p class="hint">Reads every record, re-derives each hash here, and compares the chain with its signed checkpoints.</p>
<details><summary>Verify an export</summary>
<p class="hint">A file of <code>router export --feedback --checkpoints</code>, checked here as <code>router verify --file</code> does; nothing is sent.</p>
<form id="export-form">
<label for="export-file">Export</label> <input id="export-file" type="file" accept=".jsonl" required>
<label for="export-key">Public key that you kept, in base64 (or a list of published keys)</label>
<div class="row"><input id="export-key" autocomplete="off" spellcheck="false"> <button>Verify the file</button></div>
</form>
<div id="export-verified" class="body" role="status"></div></details>
<div id="verified" class="body" role="status"></div></section>
<section id="traces" class="card wide" aria-labelledby="traces-title" tabindex="-1"><h2 id="traces-title">Traces</h2>
<form id="filter">
<label>Mode <select name="mode"><option value="">any</option>${modes.map(name => html`<option>${name}</option>`)}</select></label>
<label>Served from <select name="served_from"><option value="">any</option>${servedFrom.options.map(name => html`<option>${name}</option>`)}</select></label>
<label>Route <input name="route" inputmode="numeric" pattern="[0-9]*" size="4" placeholder="any"></label>
<label>Session <input name="session" size="14" maxlength="512" placeholder="any" spellcheck="false"></label>
<label>Since <input name="since" type="date"></label>
<div class="row"><button>Filter</button> <button type="reset">Clear</button></div>
</form>
<form id="find"><label for="find-id">Find by trace, response or request id</label>
<div class="row"><input id="find-id" size="36" maxlength="512" pattern=".*\\S.*" title="An id, not only spaces" spellcheck="false" required> <button>Open</button></div></form>
<p id="said" class="said" role="status"></p>
<div class="body"></div>
<div class="row pages"><button id="older" type="button" hidden>Older traces</button></div></section>
</main>
<dialog id="detail" aria-labelledby="detail-title"></dialog>
</body>
</html>`
}
