import { createMiddleware } from 'hono/factory'
import { readBody } from '../../shared/http/body-limit.ts'
import { stopUnder } from '../../shared/time/stop-under.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import type { ActiveConfig } from '../active-config.ts'
import type { RouterHttpEnv } from '../auth/access.ts'
import { sendable } from '../enforce/commit-response.ts'
import { enforce } from '../enforce/enforce.ts'
import { toResponse } from '../enforce/to-response.ts'
import { type RelayAnswer, relay } from '../observe/relay.ts'
import { type Target, targetOf } from '../observe/target.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { decideCall, readsBody } from './decide-call.ts'
import { decodedBody } from './decoded-body.ts'
import type { InboundDeps } from './deps.ts'

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
    const answer = readsBody(to, headers, active)
      ? await read(arrived, to, active, deps)
      : await pass(arrived, request.body, to, deps, null)
    c.set('relayed', true)
    return answer
  })
}

async function read(arrived: Arrived, to: Target, active: ActiveConfig, deps: InboundDeps): Promise<Response> {
  const { request } = arrived
  const times = { arrivedAt: deps.clock.now(), arrived: deps.clock.monotonic() }
  const body = await readBody(request, deps.maxBodyBytes)
  const plain = await decodedBody(arrived.headers, body, deps.maxBodyBytes)
  const decided = decideCall({ ...arrived, ...times, ...plain }, to, active, deps)
  if ('observe' in decided) return pass(arrived, whole(body), to, deps, decided.observe)
  const { stop, leave } = stopUnder(request.signal)
  const answer = await enforce(decided.enforce, deps.enforcing(active), stop)
  // An answer that flows can still be left.
  if (!('frames' in answer)) leave()
  return toResponse(answer)
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
    // Where the connection cannot be cut, a broken stream is what the host gets to see.
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
