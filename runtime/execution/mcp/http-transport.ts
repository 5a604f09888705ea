import type { Transport } from '@modelcontextprotocol/client'
import type { EgressClient, EgressInit } from '../../../shared/http/outbound/egress-client.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { StepFailure } from '../failure.ts'
import { MAX_MESSAGE_BYTES } from '../step-output.ts'
import { type QuotedNumbers, quotedNumbers } from './quoted-numbers.ts'

/** Where the key of a step stands among what goes along with a call (docs/spec/runtime.md §5, "Key"). */
export const KEY_META = 'waybill/idempotencyKey'

/** Called with the key of a call of whose answer no more will come; the SDK alone would wait for its deadline. */
export type Broken = (key: string, error: StepFailure) => void

const READING_MS = 100
const RECONNECT = {
  initialReconnectionDelay: 250,
  maxReconnectionDelay: 5000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 3,
}
/** A server may say when a stream is to be asked for again: not in a loop, and not in a number that a timer takes for none. */
const SOONEST_AGAIN_MS = 100
const LATEST_AGAIN_MS = 60_000

/** Streamable HTTP through the guarded way out. */
export async function httpTransport(
  url: URL,
  fetch: EgressClient['fetch'],
  broken: Broken,
): Promise<Transport & { terminateSession(): Promise<void> }> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const resuming = new Set<string>()

  async function send(given: string | URL, init: RequestInit = {}): Promise<Response> {
    const { method = 'GET', body, signal } = init
    const sent = Object.fromEntries(new Headers(init.headers))
    // Unrequested messages of a server are not listened for: a connection would be held open for each run and each server.
    if (method === 'GET' && sent['last-event-id'] === undefined) return new Response(null, { status: 405 })
    const outgoing: EgressInit = {
      method,
      headers: { 'user-agent': 'waybill', ...sent },
      signal: signal ?? new AbortController().signal,
      ...(typeof body === 'string' && { body }),
    }
    const answer = await fetch(new URL(given), outgoing)
    const key = method === 'POST' && typeof body === 'string' ? keyIn(body) : undefined
    // The rest of an answer is of a call where one waits for it.
    return watched(answer, key, key !== undefined || (method === 'GET' && resuming.size > 0))
  }

  /** An answer that has an end and a largest size, and of a call no number that its reader would change. */
  function watched(answer: Response, key: string | undefined, ofCall: boolean): Response {
    const { body, status, headers } = answer
    if (body === null || !answer.ok) return bounded(answer)
    let left = MAX_MESSAGE_BYTES
    const seen = eventIds()
    const over = (error: StepFailure) => {
      const tooLarge = error.code === 'result_too_large'
      // The SDK asks for the rest of an answer whose events have ids.
      if (key !== undefined && seen.any && !tooLarge) return resuming.add(key)
      // A rest names no call. What is too large would be no smaller the next time.
      const ended = key !== undefined ? [key] : ofCall && tooLarge ? [...resuming] : []
      // The result may be among the bytes that are on their way to their reader; then there is no listener any more.
      setTimeout(() => {
        for (const one of ended) broken(one, error)
      }, READING_MS)
    }
    const numbers = ofCall ? numbersOf(headers.get('content-type') ?? '') : undefined
    const reader = body.getReader()
    const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            const rest = numbers?.end()
            if (rest && rest.length > 0) controller.enqueue(rest as Uint8Array<ArrayBuffer>)
            controller.close()
            over(new StepFailure('mcp_failed', 'the server ended its answer before the result', { transient: true }))
            return
          }
          left -= value.length
          if (left < 0) {
            const error = new StepFailure(
              'result_too_large',
              `the server answered with more than ${MAX_MESSAGE_BYTES} bytes`,
            )
            await reader.cancel().catch(() => undefined)
            over(error)
            controller.error(error)
            return
          }
          seen.read(value)
          // A piece that ends in a number may leave nothing to give on yet; the reader asks again only for what it was given.
          controller.enqueue((numbers?.push(value) ?? value) as Uint8Array<ArrayBuffer>)
        } catch (error) {
          controller.error(error)
          over(
            new StepFailure('mcp_failed', 'the connection broke before the result', { transient: true, cause: error }),
          )
        }
      },
      cancel: reason => reader.cancel(reason),
    })
    return new Response(stream, { status, headers })
  }

  const transport = new StreamableHTTPClientTransport(url, {
    fetch: send,
    reconnectionOptions: RECONNECT,
    reconnectionScheduler(reconnect, delay) {
      const timer = setTimeout(reconnect, Math.min(Math.max(delay, SOONEST_AGAIN_MS), LATEST_AGAIN_MS))
      return () => clearTimeout(timer)
    },
    // Same-origin redirects are followed below, by the guard.
    redirectPolicy: 'follow',
  })
  transport.onerror = error => {
    if (!error.message.startsWith('Maximum reconnection attempts')) return
    const lost = new StepFailure('mcp_failed', 'the rest of the answer could not be had', { transient: true })
    for (const key of resuming) broken(key, lost)
    resuming.clear()
  }
  return transport
}

/** An error's text is shown in part only, so no more than that is read. */
function bounded(answer: Response): Response {
  const { body, status, headers } = answer
  if (body === null) return answer
  let left = 4096
  const cut = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left))
      left -= chunk.length
      if (left <= 0) controller.terminate()
    },
  })
  return new Response(body.pipeThrough(cut as TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>), {
    status,
    headers,
  })
}

/** Only what the SDK reads as JSON; a list of tools keeps its numbers, which are limits in schemas. */
function numbersOf(type: string): QuotedNumbers | undefined {
  if (/^application\/json\b/i.test(type)) return quotedNumbers('json')
  return /^text\/event-stream\b/i.test(type) ? quotedNumbers('events') : undefined
}

function keyIn(body: string): string | undefined {
  const { params } = readJson(body) as { params?: { _meta?: Record<string, unknown> } }
  const key = params?._meta?.[KEY_META]
  return typeof key === 'string' ? key : undefined
}

/** Whether an event stream has named an event so far: a line that begins with `id:`. */
export function eventIds() {
  const wanted = [0x69, 0x64, 0x3a]
  let at = 0
  let any = false
  return {
    read(chunk: Uint8Array) {
      for (const byte of any ? [] : chunk) {
        if (byte === 0x0a || byte === 0x0d) at = 0
        else if (at >= 0) at = byte === wanted[at] ? at + 1 : -1
        if (at === wanted.length) {
          any = true
          return
        }
      }
    },
    get any() {
      return any
    },
  }
}
