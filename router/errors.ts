import type { Context, ErrorHandler, Hono, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { ApiError } from '../shared/http/api-error.ts'
import { wantsHtml } from '../shared/http/wants-html.ts'
import { uuidv7 } from '../shared/ids/uuid-v7.ts'
import { type Log, type RateLimited, REPEATS_OMITTED, rateLimitedLog } from '../shared/log/log.ts'
import { DamagedRowError } from '../shared/sql/db.ts'
import { isStoreUnavailable } from '../shared/sql/db-fault.ts'
import { storeFault } from '../shared/sql/store-faults.ts'
import { systemClock } from '../shared/time/clock.ts'
import { type ErrorDialect, errorBodyFor } from '../shared/wire/router/error.ts'
import { type RouterErrorCase, retryHeaders, routerErrors } from '../shared/wire/router/error-cases.ts'
import { responseHeaders } from '../shared/wire/router/headers.ts'
import type { RouterHttpEnv } from './auth/access.ts'
import { GOOGLE_KEY, isOtherDialect, isProviderPath } from './observe/target.ts'
import { PANEL_POLICY } from './panel/policy.ts'

/** Codes of the shared HTTP layer, in this service's words. */
const SHARED_CODES: Record<string, RouterErrorCase> = {
  payload_too_large: 'too_large',
  validation_failed: 'bad_request',
  bad_json: 'bad_request',
}

/** The error shape that a caller of this path can read. */
export function dialectOf(path: string): ErrorDialect {
  if (path.startsWith('/v1/messages')) return 'messages'
  // The Responses API has the errors of chat.
  return path.startsWith('/v1/chat/completions') || path === '/v1/responses' ? 'chat' : 'elsewhere'
}

/** What a caller gets instead of an answer. */
export interface Refusal {
  name: RouterErrorCase
  message: string
  headers?: Readonly<Record<string, string>> | undefined
}

/** What the log says of a request beside its error: the id is one that its caller has. */
interface At {
  method: string
  path: string
  /** The client left. */
  gone: boolean
  trace_id?: string
  request_id?: string
}

/** The one place that says what an error means: a refusal in its own words, anything unknown in brief and logged in full. */
export function refusalOf(error: unknown, at: At, log: Log, once: RateLimited): Refusal {
  const { gone, ...call } = at
  if (error instanceof ApiError) {
    const name = toCase(error.code)
    if (name === 'upstream')
      once(error.message, () => log.warn(`${error.message}; ${REPEATS_OMITTED}`, { cause: error.cause, ...call }))
    if (name !== undefined) return { name, message: error.message, headers: error.headers }
  }
  // This answer has no reader: the client left, and its call was given up.
  if (gone) return { name: 'upstream', message: 'the client went away' }
  if (error instanceof HTTPException && error.status < 500) return { name: 'bad_request', message: error.message }
  if (isStoreUnavailable(error)) {
    once('away', () => log.warn(`the store was not reached; ${REPEATS_OMITTED}`, { error, ...call }))
    const message = 'the store does not answer: try again in a moment'
    return { name: 'overloaded', message, headers: { 'retry-after': '5' } }
  }
  const fault = storeFault(error)
  if (fault !== undefined) {
    once(fault, () => log.error(`the store refused a statement; ${REPEATS_OMITTED}`, { error, ...call }))
    return { name: 'overloaded', message: fault, headers: { 'retry-after': '30' } }
  }
  log.error('request failed', { error, ...call })
  if (error instanceof DamagedRowError) return { name: 'internal', message: error.message }
  return { name: 'internal', message: 'internal error' }
}

export function answerErrors(log: Log, outHeaders: boolean): ErrorHandler<RouterHttpEnv> {
  const once = rateLimitedLog(systemClock)
  return (error, c) => {
    const { method, path } = c.req
    const gone = c.req.raw.signal.aborted
    const { name, message, headers } = refusalOf(
      error,
      { method, path, gone, request_id: c.get('requestId') },
      log,
      once,
    )
    return refusing(outHeaders)(c, name, message, headers)
  }
}

/** 405 with `allow` where the path exists under another method, else 404. */
export function answerUnknownRoute(app: Hono<RouterHttpEnv>, outHeaders: boolean): NotFoundHandler<RouterHttpEnv> {
  const refusal = refusing(outHeaders)
  let methodsOf: ((path: string) => readonly string[]) | undefined
  return c => {
    // The routes are read at the first miss: by then every feature is mounted.
    methodsOf ??= allowedMethods(app.routes)
    const { method, path } = c.req
    if (isOtherDialect(path) || (isProviderPath(path) && c.req.header(GOOGLE_KEY) !== undefined)) {
      const message = `the Gemini dialect (${path}) is not served: call /v1/chat/completions or /v1/messages, where a Gemini model can be a rung by its OpenAI-compatible address`
      return refusal(c, 'not_found', message)
    }
    const allowed = methodsOf(path)
    if (allowed.length === 0) {
      if (wantsHtml(c.req.raw)) return unknownPage(c)
      return refusal(c, 'not_found', `no such path: ${path}`)
    }
    const message = `${path} does not take ${method}: use ${allowed.join(' or ')}`
    return refusal(c, 'method_not_allowed', message, { allow: allowed.join(', ') })
  }
}

/** For a person at a browser. The page is loaded at the first miss, since hardly any router has one. */
async function unknownPage(c: Context): Promise<Response> {
  const { notFoundPage } = await import('./panel/not-found-page.ts')
  const { path } = c.req
  c.header('content-security-policy', PANEL_POLICY)
  c.header('x-content-type-options', 'nosniff')
  return c.html(notFoundPage(path, '../'.repeat(path.split('/').length - 2) || './'), 404)
}

/** Answers a refusal; on the provider paths under the id that a trace of the call would have. */
const refusing =
  (outHeaders: boolean) =>
  (
    c: Context<RouterHttpEnv>,
    name: RouterErrorCase,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ): Response => {
    const dialect = dialectOf(c.req.path)
    const isCall = dialect !== 'elsewhere'
    const id = isCall ? uuidv7() : c.get('requestId')
    return c.json(errorBodyFor(dialect, name, message, id), routerErrors[name].status as ContentfulStatusCode, {
      ...(dialect === 'messages' && { 'request-id': id }),
      ...(isCall && outHeaders && { [responseHeaders.traceId]: id }),
      ...retryHeaders(name),
      ...headers,
    })
  }

function toCase(code: string): RouterErrorCase | undefined {
  if (Object.hasOwn(routerErrors, code)) return code as RouterErrorCase
  return SHARED_CODES[code]
}

interface MountedRoute {
  method: string
  /** In the framework's spelling: `/v1/traces/:id`. */
  path: string
}

/** The methods that a path takes, so that a wrong method can be told from a wrong path. Middleware does not count. */
export function allowedMethods(routes: readonly MountedRoute[]): (path: string) => readonly string[] {
  const byPath = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  for (const { method, path } of routes) {
    if (method === 'ALL') continue
    const known = byPath.get(path) ?? { pattern: toPattern(path), methods: new Set<string>() }
    known.methods.add(method)
    if (method === 'GET') known.methods.add('HEAD')
    byPath.set(path, known)
  }
  const all = [...byPath.values()]
  return path => [...new Set(all.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods]))]
}

function toPattern(path: string): RegExp {
  const parts = path.split(/:\w+/).map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^/]+')}$`)
}
