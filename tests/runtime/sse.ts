import { EventSourceParserStream } from 'eventsource-parser/stream'

export interface Received {
  id: string | undefined
  event: string | undefined
  data: Record<string, unknown>
}

/** Reads a stream of events with a parser that is not ours. */
export function sseReader(body: ReadableStream<Uint8Array>) {
  const reader = body
    .pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>)
    .pipeThrough(new EventSourceParserStream())
    .getReader()
  return {
    async next(): Promise<Received | undefined> {
      const { value, done } = await reader.read()
      return done ? undefined : { id: value.id, event: value.event, data: JSON.parse(value.data) }
    },
    async all(): Promise<Received[]> {
      const found: Received[] = []
      for (let one = await this.next(); one; one = await this.next()) found.push(one)
      return found
    },
    stop: () => reader.cancel(),
  }
}
