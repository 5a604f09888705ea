import { Hono } from 'hono'
import { html, raw } from 'hono/html'

/** The members of an OpenAPI document that the page shows. */
interface Document {
  info: { title: string; version: string; description?: string }
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components?: { schemas?: Readonly<Record<string, unknown>> }
}

interface Operation {
  operationId?: string
  summary?: string
  description?: string
  tags?: readonly string[]
  security?: readonly Readonly<Record<string, readonly string[]>>[]
  parameters?: readonly { name: string; in: string; required?: boolean; description?: string; schema?: unknown }[]
  requestBody?: { content?: Readonly<Record<string, { schema?: unknown }>> }
  responses?: Readonly<
    Record<string, { description?: string; content?: Readonly<Record<string, { schema?: unknown }>> }>
  >
}

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#ccc, #444); --quiet: light-dark(#555, #aaa); --link: light-dark(#0645ad, #8ab4f8) }
body { background: light-dark(#fff, #14171b); color: light-dark(#1b1f24, #e8ebee); font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
a { color: var(--link) }
h2 { margin-top: 2rem; border-bottom: 1px solid var(--line) }
summary { cursor: pointer; padding: .35rem 0; overflow-wrap: anywhere }
summary b { display: inline-block; min-width: 4.5rem; font-family: ui-monospace, monospace }
summary span, .quiet { color: var(--quiet) }
details { border-bottom: 1px solid var(--line) }
details > div { padding: 0 0 1rem 1rem }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: 4px; font-size: .85rem }
code { font-family: ui-monospace, monospace }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem }
nav a { white-space: nowrap }`

/** The document as a page to read: no script, nothing from elsewhere, built at the first request. */
export function docsPage(document: () => Promise<object>) {
  let page: Promise<string> | undefined
  return new Hono().get('/docs', async c => {
    page ??= document().then(async found => String(await render(found as Document)))
    c.header(
      'content-security-policy',
      "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    )
    c.header('cache-control', 'no-cache')
    return c.html(await page)
  })
}

function render({ info, paths, components }: Document) {
  const tags = new Map<string, { method: string; path: string; operation: Operation }[]>()
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? 'Other'
      tags.set(tag, [...(tags.get(tag) ?? []), { method: method.toUpperCase(), path, operation }])
    }
  }
  const schemas = Object.entries(components?.schemas ?? {})
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${info.title}</title>
<link rel="icon" href="ui/files/icon.svg">
<style>${raw(STYLE)}</style>
<header><a href="./"><strong>Waybill</strong></a></header>
<main>
<h1>${info.title}</h1>
<p>${info.description ?? ''}</p>
<p class="quiet">Version ${info.version}. The same for machines: <a href="openapi.json">openapi.json</a>. Operations under <code>/v1/</code> want
<code>Authorization: Bearer wb_live_…</code>.</p>
<nav aria-label="Groups of operations">${[...tags.keys(), 'Schemas'].map(tag => html`<a href="#${anchor(tag)}">${tag}</a>`)}</nav>
${[...tags].map(([tag, operations]) => html`<h2 id="${anchor(tag)}">${tag}</h2>${operations.map(one => shown(one))}`)}
<h2 id="schemas">Schemas</h2>
${schemas.map(([name, schema]) => html`<details id="schema-${name}"><summary><code>${name}</code></summary><div>${json(schema)}</div></details>`)}
</main>
</html>`
}

function shown({ method, path, operation }: { method: string; path: string; operation: Operation }) {
  const { operationId, summary, description, parameters = [], requestBody, responses = {} } = operation
  const scopes = (operation.security ?? []).flatMap(one => Object.values(one).flat())
  return html`<details id="${operationId ?? ''}">
<summary><b>${method}</b> <code>${path}</code> <span>${summary ?? ''}</span></summary>
<div>
${description === undefined ? '' : html`<p>${description}</p>`}
${scopes.length === 0 ? '' : html`<p>Scope: ${scopes.map((scope, at) => html`${at > 0 ? ' or ' : ''}<code>${scope}</code>`)}</p>`}
${
  parameters.length === 0
    ? ''
    : html`<h3>Parameters</h3><ul>${parameters.map(
        one =>
          html`<li><code>${one.name}</code> <span class="quiet">${one.in}${one.required ? ', required' : ''}</span> ${one.description ?? ''} ${json(one.schema)}</li>`,
      )}</ul>`
}
${Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => html`<h3>Body <span class="quiet">${type}</span></h3>${json(schema)}`)}
<h3>Answers</h3>
${Object.entries(responses).map(
  ([status, { description: said, content = {} }]) =>
    html`<p><b>${status}</b> ${said ?? ''}</p>${Object.values(content).map(({ schema }) => json(schema))}`,
)}
</div></details>`
}

/** A schema as it stands; one that only points to a named schema becomes a link. */
function json(schema: unknown) {
  if (schema === undefined) return ''
  const name = nameOf(schema)
  return name === undefined
    ? html`<pre tabindex="0">${JSON.stringify(schema, null, 2)}</pre>`
    : html`<p><a href="#schema-${name}">${name}</a></p>`
}

function nameOf(schema: unknown): string | undefined {
  if (typeof schema !== 'object' || schema === null || !('$ref' in schema)) return undefined
  return typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
}

function anchor(tag: string): string {
  return tag.toLowerCase().replaceAll(/[^a-z]+/g, '-')
}
