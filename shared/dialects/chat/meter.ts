import type { SseFrame } from '../../http/sse-read.ts'
import type { Tokens, UpstreamError } from '../candidate.ts'
import { atArray, atObject, eachItem, eachMember, keyTable, readSpan, readString } from '../json-members.ts'
import { cursor, skipSpace, spanText } from '../json-scan.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isObject, tryParse } from '../json-value.ts'
import type { Meter, MeterReading } from '../meter.ts'
import { utf8Bytes } from '../text-pieces.ts'
import { errorIn } from '../upstream-error.ts'
import { chatTokens } from './usage.ts'

/** Meters a chat stream. Some hosts send running totals on every chunk, so the last usage that is not null wins. */
export function chatMeter(): Meter {
  let id: string | null = null
  let model: string | null = null
  let serviceTier: string | null = null
  let tokens: Tokens | null = null
  let textBytes = 0
  let error: UpstreamError | null = null
  let done = false
  const finishes = new Map<number, string | null>()

  function seeChoice(choice: JsonObject): void {
    const index = typeof choice.index === 'number' ? choice.index : 0
    finishes.set(index, asString(choice.finish_reason) ?? finishes.get(index) ?? null)
    textBytes += writtenIn(asObject(choice.delta))
  }

  return {
    push(frame: SseFrame) {
      if (frame.data === undefined || done) return
      if (frame.data === '[DONE]') {
        done = true
        return
      }
      const chunk = tryParse(frame.data)
      if (!isObject(chunk)) return
      error = errorIn(chunk) ?? error
      id = asString(chunk.id) ?? id
      model = asString(chunk.model) ?? model
      serviceTier = asString(chunk.service_tier) ?? serviceTier
      if (isObject(chunk.usage)) tokens = chatTokens(chunk.usage)
      for (const choice of asArray(chunk.choices)) if (isObject(choice)) seeChoice(choice)
    },

    reading() {
      const all = [...finishes.values()]
      const first = [...finishes].sort(([a], [b]) => a - b)[0]
      const finished = all.length > 0 && all.every(finish => finish !== null)
      return {
        id,
        model,
        finish: first?.[1] ?? null,
        tokens,
        serviceTier,
        webSearches: 0,
        textBytes,
        complete: error === null && (done || finished),
        error,
      }
    },
  }
}

function writtenIn(delta: JsonObject): number {
  let bytes = 0
  for (const text of [delta.content, delta.refusal, delta.reasoning_content, delta.reasoning]) {
    if (typeof text === 'string') bytes += utf8Bytes(text)
  }
  for (const call of [...asArray(delta.tool_calls), { function: asObject(delta.function_call) }]) {
    const { name, arguments: args } = asObject(asObject(call).function)
    for (const text of [name, args]) if (typeof text === 'string') bytes += utf8Bytes(text)
  }
  return bytes
}

const ANSWER = keyTable(['id', 'model', 'service_tier', 'usage', 'choices', 'error'])
const CHOICE = keyTable(['finish_reason'])

/** Meters a whole chat answer; the messages are stepped over, not built. Throws JsonSyntaxError for a body that is not JSON. */
export function readChatBody(body: Uint8Array): MeterReading {
  const c = cursor(body)
  let id: string | null = null
  let model: string | null = null
  let serviceTier: string | null = null
  let tokens: Tokens | null = null
  let finish: string | null = null
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
      case 'service_tier':
        serviceTier = readString(c) ?? null
        break
      case 'usage': {
        const value = JSON.parse(spanText(body, readSpan(c))) as Json
        tokens = isObject(value) ? chatTokens(value) : null
        break
      }
      case 'choices':
        if (!atArray(c)) break
        eachItem(c, index => {
          if (index > 0 || !atObject(c)) return
          eachMember(c, CHOICE, member => {
            if (member === 'finish_reason') finish = readString(c) ?? null
          })
        })
        break
      case 'error':
        error = errorIn({ error: JSON.parse(spanText(body, readSpan(c))) as Json })
        break
    }
  })
  return { id, model, finish, tokens, serviceTier, webSearches: 0, textBytes: 0, complete: finish !== null, error }
}
