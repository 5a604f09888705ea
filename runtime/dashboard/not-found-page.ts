import type { Context, NotFoundHandler } from 'hono'
import { html } from 'hono/html'
import { wantsHtml } from '../../shared/http/wants-html.ts'
import { guard, rootOf } from './page-headers.ts'
import { shell } from './shell.ts'

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
