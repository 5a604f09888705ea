import { createParser } from 'eventsource-parser'
import { readJson } from '../json/read-json.ts'
import type { router } from '../wire/router/endpoints.ts'
import type { runtime } from '../wire/runtime/endpoints.ts'
import { ClientError } from './client-error.ts'
import type { CallOptions, ClientOf, StreamEvent } from './client-types.ts'
import { routerOperations, runtimeOperations } from './operations.gen.ts'
import {
  type Arguments,
  type ClientOptions,
  isPassing,
  type Outgoing,
  pause,
  type SendCall,
  sendCalls,
} from './send-call.ts'

export { ClientError } from './client-error.ts'
export type { CallOptions, StreamEvent } from './client-types.ts'
export type { ClientOptions } from './send-call.ts'

export type RuntimeClient = ClientOf<typeof runtime>
export type RouterClient = ClientOf<Pick<typeof router, 'audit' | 'operations'>>

/** Every operation of a runtime, by resource: `client.runs.create({ body: { agentName: 'helper' } })`. */
export function runtimeClient(options: ClientOptions): RuntimeClient {
  return clientOf(
    runtimeOperations,
    sendCalls(options, key => ({ authorization: `Bearer ${key}` })),
  ) as RuntimeClient
}

/** The audit and the operation of a router. Calls to models go through the SDKs of their providers. */
export function routerClient(options: ClientOptions): RouterClient {
  return clientOf(
    routerOperations,
    sendCalls(options, key => ({ 'x-router-key': key })),
  ) as RouterClient
}

type Operations = Readonly<Record<string, Readonly<Record<string, string>>>>

/** An operation is written as its method and path; `keyed`, `list`, `lines`, `stream` and `text` say what is special about it. */
function clientOf(operations: Operations, send: SendCall): object {
  const groups = Object.entries(operations).map(([group, named]) => [
    group,
    Object.fromEntries(Object.entries(named).map(([name, written]) => [name, functionOf(written, send)])),
  ])
  return Object.fromEntries(groups) as object
}

function functionOf(written: string, send: SendCall): unknown {
  const [method = '', path = '', kind] = written.split(' ')
  const call: Outgoing = { method, path, keyed: kind === 'keyed' }
  if (kind === 'stream') {
    return (args: Arguments = {}, options: CallOptions = {}) => readStream(send, call, args, options)
  }
  if (kind === 'text') {
    return (args: Arguments = {}, options: CallOptions = {}) => send(call, args, options, answer => answer.text())
  }
  const one = (args: Arguments = {}, options: CallOptions = {}) => send(call, args, options, readAnswer)
  const walk = kind === 'list' ? eachOf : kind === 'lines' ? eachLine : undefined
  if (walk === undefined) return one
  return Object.assign(one, {
    each: (args: Arguments = {}, options: CallOptions = {}) => walk(send, call, args, options),
  })
}

async function readAnswer(answer: Response): Promise<unknown> {
  const text = await answer.text()
  if (text === '') return undefined
  try {
    return readJson(text)
  } catch (cause) {
    const { status, headers } = answer
    const what = headers.get('content-type') ?? 'no content type'
    throw new ClientError(`the answer is not JSON (${what}): another service is there`, {
      status,
      headers,
      body: text,
      cause,
    })
  }
}

async function* eachOf(send: SendCall, call: Outgoing, args: Arguments, options: CallOptions): AsyncGenerator<unknown> {
  for (let query = args.query; ; ) {
    const { items, link } = await send(call, { ...args, ...(query && { query }) }, options, async answer => ({
      items: (await readAnswer(answer)) as unknown[],
      link: answer.headers.get('link') ?? '',
    }))
    yield* items
    const next = /<[^>?]*\?([^>]+)>;\s*rel="next"/.exec(link)?.[1]
    if (next === undefined) return
    query = Object.fromEntries(new URLSearchParams(next))
  }
}

const LINES = 'application/x-ndjson'

/** An answer that has more than a reader wants to hold, a line at a time. */
async function* eachLine(
  send: SendCall,
  call: Outgoing,
  args: Arguments,
  options: CallOptions,
): AsyncGenerator<unknown> {
  const { status, headers, body } = await send(call, args, options, answer => answer, { accept: LINES })
  const what = headers.get('content-type') ?? 'no content type'
  if (body === null || !what.startsWith(LINES)) {
    await body?.cancel()
    throw new ClientError(`the answer has no lines (${what}): another service is there`, { status, headers })
  }
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let unended: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      const [first = '', ...more] = decoder.decode(value, { stream: !done }).split('\n')
      unended.push(first)
      for (const text of more) {
        const line = unended.join('')
        unended = [text]
        yield readJson(line)
      }
      if (done) break
    }
    if (unended.join('') !== '') throw new TypeError('the last line has no end')
  } catch (cause) {
    if (options.signal?.aborted) throw cause
    throw new ClientError('the answer broke off', { cause })
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

const RECONNECT_MS = 1500
const MOST_FAILURES = 20

/**
 * The events of a stream, over however many connections: one that breaks is opened again behind the last event. It ends
 * when the service says that nothing more will come.
 */
async function* readStream(
  send: SendCall,
  call: Outgoing,
  args: Arguments,
  options: CallOptions,
): AsyncGenerator<StreamEvent> {
  let lastId = options.lastEventId
  let failures = 0
  for (;;) {
    const from = lastId
    let whole = false
    try {
      const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
      const answer = await send(call, args, options, head => head, { accept: 'text/event-stream', ...resume })
      if (answer.status === 204 || answer.body === null) return
      for await (const event of eventsOf(answer.body)) {
        lastId = event.id ?? lastId
        failures = 0
        yield event
      }
      whole = true
    } catch (error) {
      // What the service refuses stays refused; a connection that broke is opened again, as one to a service that is away.
      const isRefused = error instanceof ClientError && error.status !== undefined && !isPassing(error)
      if (options.signal?.aborted || isRefused || failures++ >= MOST_FAILURES) throw error
      if (error instanceof ClientError) options.onUnanswered?.()
    }
    // A stream that only replays has ended; one without an event cannot be resumed.
    if (whole && (lastId === undefined || String(args.query?.live) === 'false')) return
    // Most often that was all: the service says so to the next connection.
    if (whole && lastId !== from) continue
    await pause(RECONNECT_MS, options.signal)
  }
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const events: StreamEvent[] = []
  const parser = createParser({
    onEvent: ({ id, event = 'message', data }) => events.push({ id, event, data: readJson(data) }),
  })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
      yield* events.splice(0)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
