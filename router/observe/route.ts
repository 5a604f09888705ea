import { createMiddleware } from 'hono/factory'
import type { RequestIdEnv } from '../../shared/http/request-id.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type RelayDeps, relay } from './relay.ts'
import { targetOf } from './target.ts'

export interface ObserveDeps extends RelayDeps {
  tenantId: string
  /** Whether answers carry our own headers. */
  outHeaders: boolean
}

/** Takes every request to a provider path; anything else goes on to the service's own routes. */
export function observeRoute(deps: ObserveDeps) {
  return createMiddleware<RequestIdEnv>(async (c, next) => {
    const request = c.req.raw
    const url = new URL(request.url)
    const headers: HeaderList = [...request.headers]
    const to = targetOf(request.method, url.pathname, headers)
    if (!to) return next()
    // A reader that goes away cancels the body on every host; not every host aborts the request's own signal.
    const gone = new AbortController()
    const signal = AbortSignal.any([request.signal, gone.signal])
    const { method, body } = request
    const answer = await relay(
      { method, target: url.pathname + url.search, headers, body, signal },
      to,
      deps.tenantId,
      deps,
    )
    const head = new Headers()
    for (const [name, value] of answer.headers) head.append(name, value)
    if (deps.outHeaders) {
      head.set(responseHeaders.traceId, answer.traceId)
      head.set(responseHeaders.mode, 'observe')
    }
    const empty = method === 'HEAD' || [204, 205, 304].includes(answer.status)
    return new Response(empty ? await drained(answer.body) : toStream(answer.body, gone), {
      status: answer.status,
      headers: head,
    })
  })
}

async function drained(body: AsyncIterable<Uint8Array>): Promise<null> {
  for await (const _ of body);
  return null
}

function toStream(body: AsyncIterable<Uint8Array>, gone: AbortController): ReadableStream<Uint8Array> {
  const source = body[Symbol.asyncIterator]()
  return new ReadableStream(
    {
      async pull(stream) {
        const { done, value } = await source.next()
        if (done) stream.close()
        else stream.enqueue(value)
      },
      cancel() {
        gone.abort()
      },
    },
    { highWaterMark: 0 },
  )
}
