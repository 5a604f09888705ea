import type { SseFrame } from '../../http/sse-read.ts'
import type { UpstreamError } from '../candidate.ts'
import { eachMember, keyTable, readSpan, readString } from '../json-members.ts'
import { cursor, skipSpace, spanText } from '../json-scan.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asObject, asString, isObject, tryParse } from '../json-value.ts'
import type { Meter, MeterReading } from '../meter.ts'
import { utf8Bytes } from '../text-pieces.ts'
import { errorIn } from '../upstream-error.ts'
import { messagesUsage } from './usage.ts'

/** Meters a messages stream. */
export function messagesMeter(): Meter {
  const usage = messagesUsage()
  let id: string | null = null
  let model: string | null = null
  let finish: string | null = null
  let textBytes = 0
  let complete = false
  let error: UpstreamError | null = null

  return {
    push(frame: SseFrame) {
      if (frame.data === undefined || frame.event === 'ping') return
      const data = tryParse(frame.data)
      if (!isObject(data)) return
      switch (data.type) {
        case 'message_start': {
          const message = asObject(data.message)
          id = asString(message.id)
          model = asString(message.model)
          if (isObject(message.usage)) usage.see(message.usage)
          break
        }
        case 'content_block_start':
          textBytes += writtenIn(asObject(data.content_block))
          break
        case 'content_block_delta':
          textBytes += writtenIn(asObject(data.delta))
          break
        case 'message_delta':
          finish = asString(asObject(data.delta).stop_reason) ?? finish
          if (isObject(data.usage)) usage.see(data.usage)
          break
        case 'message_stop':
          complete = true
          break
        case 'error':
          error = errorIn(data)
          break
      }
    },

    reading: () => ({
      id,
      model,
      finish,
      tokens: usage.tokens(),
      serviceTier: usage.serviceTier,
      webSearches: usage.webSearches,
      textBytes,
      complete,
      error,
    }),
  }
}

function writtenIn(part: JsonObject): number {
  let bytes = 0
  for (const text of [part.text, part.thinking, part.partial_json])
    if (typeof text === 'string') bytes += utf8Bytes(text)
  return bytes
}

const ANSWER = keyTable(['id', 'model', 'stop_reason', 'usage', 'type', 'error', 'content'])

/** Meters a whole messages answer; the content is stepped over, not built. Throws JsonSyntaxError for a body that is not JSON. */
export function readMessagesBody(body: Uint8Array): MeterReading {
  const usage = messagesUsage()
  const c = cursor(body)
  let id: string | null = null
  let model: string | null = null
  let finish: string | null = null
  let hasContent = false
  let error: UpstreamError | null = null
  skipSpace(c)
  eachMember(c, ANSWER, key => {
    switch (key) {
      case 'id':
        id = readString(c) ?? null
        break
      case 'model':
        model = readString(c) ?? null
        break
      case 'stop_reason':
        finish = readString(c) ?? null
        break
      case 'content':
        hasContent = true
        break
      case 'usage': {
        const value = JSON.parse(spanText(body, readSpan(c))) as Json
        if (isObject(value)) usage.see(value)
        break
      }
      case 'error':
        error = errorIn({ error: JSON.parse(spanText(body, readSpan(c))) as Json })
        break
    }
  })
  return {
    id,
    model,
    finish,
    tokens: usage.tokens(),
    serviceTier: usage.serviceTier,
    webSearches: usage.webSearches,
    textBytes: 0,
    complete: hasContent && finish !== null,
    error,
  }
}
