import type { SseFrame } from '../../http/sse-read.ts'
import { readJson } from '../../json/read-json.ts'
import type { UpstreamError } from '../candidate.ts'
import type { Meter, MeterReading } from '../dialect.ts'
import { eachMember, keyTable, readSpan } from '../json-members.ts'
import { cursor, skipSpace, spanText } from '../json-scan.ts'
import { smallAnswer } from '../json-text.ts'
import { asObject, asString, isObject, type Json, type JsonObject, tryParse } from '../json-value.ts'
import { utf8Bytes } from '../text-pieces.ts'
import { errorIn } from '../upstream-error.ts'
import { fallbackOf } from './answer.ts'
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
        case 'content_block_start': {
          const block = asObject(data.content_block)
          textBytes += writtenIn(block)
          usage.fellBack(fallbackOf(block))
          break
        }
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
      model: usage.billing().fallback ?? model,
      finish,
      tokens: usage.tokens(),
      billing: usage.billing(),
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

const ANSWER = keyTable(['id', 'model', 'stop_reason', 'usage', 'error', 'content'])

/** Meters a whole messages answer. Throws JsonSyntaxError for a body that is not JSON. */
export function readMessagesBody(body: Uint8Array): MeterReading {
  const answer = smallAnswer(body) ?? steppedOver(body)
  const usage = messagesUsage()
  if (isObject(answer.usage)) usage.see(answer.usage)
  const finish = asString(answer.stop_reason)
  const billing = usage.billing()
  return {
    id: asString(answer.id),
    model: billing.fallback ?? asString(answer.model),
    finish,
    tokens: usage.tokens(),
    billing,
    textBytes: 0,
    complete: answer.content !== undefined && finish !== null,
    error: answer.error === undefined ? null : errorIn({ error: answer.error }),
  }
}

/** The members of an answer that a meter reads; the content is stepped over, not built. */
function steppedOver(body: Uint8Array): JsonObject {
  const members: { [key: string]: Json } = {}
  const c = cursor(body)
  skipSpace(c)
  eachMember(c, ANSWER, key => {
    if (key === 'content') members.content = null
    else if (key !== undefined) members[key] = readJson(spanText(body, readSpan(c))) as Json
  })
  return members
}
