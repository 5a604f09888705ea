import type { CallToolResult } from '@modelcontextprotocol/server'
import { check, sentence } from '../../shared/wire/issues.ts'
import { type RuntimeTool, runtimeTools } from './tools.ts'

export interface Caller {
  /** The bearer header of the request that the call came with. */
  authorization: string
  requestId: string
  call: (request: Request) => Promise<Response>
}

/** Where a client says under which key a call counts once. */
const KEY_META = 'waybill/idempotencyKey'
const HERE = 'http://runtime.invalid'

/** Calls a tool: the operation behind it, with the key of the caller. Whatever it answers, refusals included, is a result. */
export async function callTool(
  { authorization, requestId, call }: Caller,
  name: string,
  given: unknown,
  meta: Readonly<Record<string, unknown>> = {},
): Promise<CallToolResult> {
  const tool = Object.hasOwn(runtimeTools, name) ? runtimeTools[name] : undefined
  if (!tool) return failure(`there is no tool called ${name}; there are ${Object.keys(runtimeTools).join(', ')}`)
  const checked = check(tool.input.strict(), given ?? {})
  if (!checked.ok) return failure(sentence(checked.details))
  const key = meta[KEY_META]
  const headers = {
    authorization,
    'x-request-id': requestId,
    'content-type': 'application/json',
    ...(tool.endpoint.idempotent && typeof key === 'string' && { 'idempotency-key': key }),
  }
  const answer = await call(requestOf(tool, checked.value, headers))
  const body = (await answer.json()) as unknown
  if (!answer.ok) return failure(messageIn(body))
  const found = Array.isArray(body) ? { items: body, ...next(answer) } : (body as Record<string, unknown>)
  return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: found }
}

function requestOf(
  { endpoint }: RuntimeTool,
  given: Record<string, unknown>,
  headers: Record<string, string>,
): Request {
  const rest = { ...given }
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = String(rest[name])
    delete rest[name]
    // A segment of dots alone would climb out of its place; encoded twice it names nothing.
    return /^\.+$/.test(value) ? encodeURIComponent('%2e') : encodeURIComponent(value.toWellFormed())
  })
  const url = new URL(path, HERE)
  if (endpoint.method !== 'GET') {
    return new Request(url, { method: endpoint.method, headers, body: JSON.stringify(rest) })
  }
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) url.searchParams.set(name, String(value))
  return new Request(url, { headers })
}

function next(answer: Response): { nextCursor?: string } {
  const [, link] = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '') ?? []
  const cursor = link === undefined ? null : new URL(link, HERE).searchParams.get('cursor')
  return cursor === null ? {} : { nextCursor: cursor }
}

function messageIn(body: unknown): string {
  const { error, code } = (typeof body === 'object' && body !== null ? body : {}) as { error?: string; code?: string }
  return `${error ?? 'failed'}${code === undefined ? '' : ` (${code})`}`
}

export function failure(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true }
}
