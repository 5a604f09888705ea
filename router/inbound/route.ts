import { createMiddleware } from 'hono/factory'
import { dialects } from '../../shared/dialects/dialects.ts'
import type { RequestFacts } from '../../shared/dialects/request-facts.ts'
import { ApiError } from '../../shared/http/api-error.ts'
import { readBody } from '../../shared/http/body-limit.ts'
import type { Profile } from '../../shared/wire/router/conventions.ts'
import { requestHeaders, responseHeaders } from '../../shared/wire/router/headers.ts'
import type { ActiveConfig } from '../active-config.ts'
import { mayRoute } from '../active-config.ts'
import type { RouterHttpEnv } from '../auth/access.ts'
import type { Route } from '../config/routing-config.ts'
import { enforce } from '../enforce/handle.ts'
import { sendable } from '../enforce/respond.ts'
import { type RelayAnswer, relay } from '../observe/relay.ts'
import { type Target, targetOf } from '../observe/target.ts'
import { matchRoute } from '../policy/match-route.ts'
import { resolveMode } from '../policy/mode.ts'
import { agentOfHeaders } from '../receipt/request-part.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { InboundDeps } from './deps.ts'

/** More choices than this multiply cost beyond what anyone wants gated. */
const MAX_CHOICES = 8

interface Arrived {
  traceId: string
  method: string
  path: string
  /** Path and query, as they came. */
  target: string
  headers: HeaderList
  request: Request
}

/** Takes every request to a provider path; anything else goes on to the service's own routes. */
export function inboundRoute(given: InboundDeps) {
  return createMiddleware<RouterHttpEnv>(async (c, next) => {
    const request = c.req.raw
    const url = new URL(request.url)
    const headers: HeaderList = [...request.headers]
    const to = targetOf(request.method, url.pathname, headers)
    if (!to) return next()
    const { tenantId } = c.get('caller')
    const deps = tenantId === given.tenantId ? given : { ...given, tenantId }
    const target = url.pathname + url.search
    const traceId = deps.newId()
    c.set('traceId', traceId)
    const arrived = { traceId, method: request.method, path: url.pathname, target, headers, request }
    const active = deps.active()
    const header = headerValue(headers, requestHeaders.mode)
    const routable = to.api === 'messages' || to.api === 'chat'
    // Without a config and without a header there is nothing to decide, so the body passes unread.
    const reads = routable && (mayRoute(active) || header !== undefined)
    const answer = reads
      ? await decide(arrived, to, active, header, deps)
      : await pass(arrived, request.body, to, deps, null)
    c.set('relayed', true)
    return answer
  })
}

async function decide(
  arrived: Arrived,
  to: Target,
  active: ActiveConfig,
  header: string | undefined,
  deps: InboundDeps,
): Promise<Response> {
  const { headers, request } = arrived
  const arrivedAt = deps.clock.now()
  const start = deps.clock.monotonic()
  const body = await readBody(request, deps.maxBodyBytes)
  const scan = dialects[to.dialect].scan(body)
  const facts = scan.ok ? scan.facts : undefined
  const route = facts && routeFor(facts, body.length, arrived, to, active, deps.tenantId)
  const resolved = resolveMode(header, route)
  if ('error' in resolved) throw new ApiError('bad_request', resolved.error)
  if (resolved.mode === 'observe') {
    // An observed body need not parse; but where routes wait for it, a body that nobody can read is the caller's to mend.
    if (!scan.ok && resolved.byHeader === null)
      throw new ApiError('bad_request', `the body is not JSON: ${scan.message}`)
    return pass(arrived, whole(body), to, deps, route?.ix ?? null)
  }
  if (!facts?.model) throw new ApiError('bad_request', 'model is required: name a model, or "auto"')
  if (facts.n > MAX_CHOICES)
    throw new ApiError('bad_request', `n is ${facts.n}, and at most ${MAX_CHOICES} choices are routed`)
  const input = {
    traceId: arrived.traceId,
    tenantId: deps.tenantId,
    inbound: { dialect: to.dialect, target: arrived.target, headers, body, facts: { ...facts, model: facts.model } },
    // Enforce is only ever resolved for a route that has a ladder.
    route: route!,
    profile: resolved.profile as Profile,
    profileByHeader: resolved.byHeader === 'profile',
    arrivedAt,
    arrived: start,
  }
  return enforce(input, deps.enforcing(active), request.signal)
}

function routeFor(
  facts: RequestFacts,
  bodyBytes: number,
  { headers }: Arrived,
  { dialect }: Target,
  { config }: ActiveConfig,
  tenant: string,
): Route | undefined {
  return matchRoute(config.routes, {
    api: dialect,
    tenant,
    agent: agentOfHeaders(headers),
    subagent: headerValue(headers, requestHeaders.subagent),
    task: headerValue(headers, requestHeaders.task),
    language: headerValue(headers, requestHeaders.language),
    model: facts.model?.value,
    hasTools: facts.toolCount > 0,
    hasImages: facts.imageCount > 0,
    stream: facts.stream,
    bodyBytes,
    header: name => headerValue(headers, name),
  })
}

/** Observe: bytes in, bytes out. */
async function pass(
  { traceId, method, target, headers, request }: Arrived,
  body: AsyncIterable<Uint8Array> | null,
  to: Target,
  deps: InboundDeps,
  routeIx: number | null,
): Promise<Response> {
  // A reader that goes away cancels the body on every host; not every host aborts the request's own signal.
  const gone = new AbortController()
  const signal = AbortSignal.any([request.signal, gone.signal])
  const answer = await relay({ traceId, method, target, headers, body, signal, routeIx }, to, deps.tenantId, deps)
  const broken = (error: unknown): void => {
    deps.log.warn('an answer broke off on its way', { trace_id: traceId, error })
    // Where nobody can cut the connection, a broken stream is what the host gets to see.
    if (!deps.cut) throw error
    deps.cut(request)
  }
  const empty = method === 'HEAD' || [204, 205, 304].includes(answer.status)
  const sent = empty ? await drained(answer.body) : toStream(answer.body, gone, broken)
  return new Response(sent, { status: sendable(answer.status), headers: headOf(answer, deps) })
}

function headOf(answer: RelayAnswer, { outHeaders }: InboundDeps): Headers {
  const head = new Headers()
  for (const [name, value] of answer.headers) head.append(name, value)
  if (outHeaders) {
    head.set(responseHeaders.traceId, answer.traceId)
    head.set(responseHeaders.mode, 'observe')
  }
  return head
}

async function* whole(body: Uint8Array): AsyncIterable<Uint8Array> {
  if (body.length > 0) yield body
}

async function drained(body: AsyncIterable<Uint8Array>): Promise<null> {
  for await (const _ of body);
  return null
}

function toStream(
  body: AsyncIterable<Uint8Array>,
  gone: AbortController,
  broken: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const source = body[Symbol.asyncIterator]()
  return new ReadableStream(
    {
      async pull(stream) {
        const next = await source.next().catch((error: unknown) => {
          if (!gone.signal.aborted) broken(error)
          return { done: true as const, value: undefined }
        })
        if (next.done) stream.close()
        else stream.enqueue(next.value)
      },
      cancel() {
        gone.abort()
      },
    },
    { highWaterMark: 0 },
  )
}
