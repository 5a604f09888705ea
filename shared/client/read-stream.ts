import { createParser } from 'eventsource-parser'
import { readJson } from '../json/read-json.ts'
import { ClientError } from './client-error.ts'
import type { CallOptions, StreamEvent } from './client-types.ts'
import { type Arguments, type Outgoing, pause, type SendCall } from './send-call.ts'

const RECONNECT_MS = 1500
const MOST_FAILURES = 20

/**
 * The events of a stream, over however many connections: one that breaks is opened again behind the last event. It ends
 * when the service says that nothing more will come.
 */
export async function* readStream(
  send: SendCall,
  call: Outgoing,
  args: Arguments,
  options: CallOptions,
): AsyncGenerator<StreamEvent> {
  let lastId = options.lastEventId
  for (let failures = 0; ; failures++) {
    const from = lastId
    let whole = false
    try {
      const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
      const answer = await send(call, args, options, { accept: 'text/event-stream', ...resume })
      if (answer.status === 204 || answer.body === null) return
      for await (const event of eventsOf(answer.body)) {
        lastId = event.id ?? lastId
        failures = 0
        yield event
      }
      whole = true
    } catch (error) {
      // What the service refuses stays refused; a connection that broke is opened again.
      if (options.signal?.aborted || (error instanceof ClientError && error.status !== undefined)) throw error
      if (failures >= MOST_FAILURES) throw error
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
