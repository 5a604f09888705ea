import { html } from 'hono/html'
import { runtimeOperations } from '../../shared/client/operations.gen.ts'
import type { Html } from './page.ts'

type Groups = typeof runtimeOperations
/** An operation as the typed client names it. */
export type OperationName = { [G in keyof Groups]: `${G}.${Extract<keyof Groups[G], string>}` }[keyof Groups]

/** A call of the API that does what a page does. */
export interface ApiCall {
  about: string
  operation: OperationName
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string>>
  body?: unknown
}

/** How the same is done by a program; folded away, since most readers of a page have come to look. */
export function snippets(calls: readonly ApiCall[]): Html {
  return html`<details class="card snippets"><summary>Do this from a program</summary>
${calls.map(
  call =>
    html`<h2>${call.about}</h2>${snippet(`curl: ${call.about}`, curlOf(call))}${snippet(`TypeScript: ${call.about}`, typescriptOf(call))}`,
)}<p class="hint">A key comes from <em>Settings, API keys</em>; <code>PLATFORM_URL</code> is the address of this page without its path.</p></details>`
}

const snippet = (about: string, text: string): Html =>
  html`<div class="json"><pre tabindex="0">${text}</pre><button type="button" class="copy needs-script" data-copy="${text}" aria-label="Copy ${about}">Copy</button></div>`

export function curlOf({ operation, params = {}, query, body }: ApiCall): string {
  const [group, name] = operation.split('.') as [keyof Groups, string]
  const [method = 'GET', path = ''] = ((runtimeOperations[group] as Record<string, string>)[name] ?? '').split(' ')
  const filled = path.replace(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(params[param] ?? ''))
  const asked = query === undefined ? '' : `?${new URLSearchParams(query)}`
  const lines = [
    `curl -sS${method === 'GET' ? '' : ` -X ${method}`} "$PLATFORM_URL"${shellQuoted(filled + asked)}`,
    '-H "authorization: Bearer $PLATFORM_API_KEY"',
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `-d ${shellQuoted(JSON.stringify(body))}`]),
  ]
  return lines.join(' \\\n  ')
}

export function typescriptOf({ operation, params, query, body }: ApiCall): string {
  const given = Object.entries({ params, query, body }).filter(([, value]) => value !== undefined)
  const argument = given.map(([name, value]) => `${name}: ${literal(value)}`).join(', ')
  return [
    `import { runtimeClient } from 'waybill/client'`,
    '',
    'const client = runtimeClient({ url: process.env.PLATFORM_URL!, key: process.env.PLATFORM_API_KEY! })',
    `const answer = await client.${operation}(${given.length === 0 ? '' : `{ ${argument} }`})`,
  ].join('\n')
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** A value of JSON as it is written in TypeScript. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined'
  const members = Object.entries(value).map(([name, one]) => {
    return `${/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)}: ${literal(one)}`
  })
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}
