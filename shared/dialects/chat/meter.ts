import type { SseFrame } from '../../http/sse-read.ts'
import { readJson } from '../../json/read-json.ts'
import type { Tokens, UpstreamError } from '../candidate.ts'
import type { Meter, MeterReading } from '../dialect.ts'
import { atArray, atObject, eachItem, eachMember, keyTable, readSpan, readString } from '../json-members.ts'
import { type Cursor, cursor, skipSpace, spanText } from '../json-scan.ts'
import { smallAnswer } from '../json-text.ts'
import { asArray, asObject, asString, isObject, type Json, type JsonObject, tryParse } from '../json-value.ts'
import { utf8Bytes } from '../text-pieces.ts'
import { errorIn } from '../upstream-error.ts'
import { readContent, writtenText } from './answer.ts'
import { chatBilling, chatTokens, usageOf } from './usage.ts'

/** Meters a chat stream. Some hosts send running totals on every chunk, so the last usage that is not null wins. */
export function chatMeter(): Meter {
  let id: string | null = null
  let model: string | null = null
  let serviceTier: string | null = null
  let usage: JsonObject = {}
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
      const counted = usageOf(chunk)
      if (isObject(counted)) {
        usage = counted
        tokens = chatTokens(usage) ?? tokens
      }
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
        billing: chatBilling({ model, service_tier: serviceTier, usage }),
        textBytes,
        complete: error === null && (done || finished),
        error,
      }
    },
  }
}

function writtenIn(delta: JsonObject): number {
  let bytes = 0
  const { text: said, thinking } = readContent(delta.content)
  for (const text of [said, thinking, delta.refusal, delta.reasoning_content, delta.reasoning]) {
    if (typeof text === 'string') bytes += utf8Bytes(text)
  }
  for (const call of [...asArray(delta.tool_calls), { function: asObject(delta.function_call) }]) {
    const { function: known, custom } = asObject(call)
    const { name, arguments: args } = asObject(known)
    const { name: customName, input } = asObject(custom)
    for (const text of [name, writtenText(args), customName, input])
      if (typeof text === 'string') bytes += utf8Bytes(text)
  }
  return bytes
}

const ANSWER = keyTable(['id', 'model', 'service_tier', 'usage', 'choices', 'error'])
const CHOICE = keyTable(['finish_reason'])

/** Meters a whole chat answer. Throws JsonSyntaxError for a body that is not JSON. */
export function readChatBody(body: Uint8Array): MeterReading {
  const answer = smallAnswer(body) ?? steppedOver(body)
  const finish = asString(asObject(asArray(answer.choices)[0]).finish_reason)
  return {
    id: asString(answer.id),
    model: asString(answer.model),
    finish,
    tokens: isObject(answer.usage) ? chatTokens(answer.usage) : null,
    billing: chatBilling(answer),
    textBytes: 0,
    complete: finish !== null,
    error: answer.error === undefined ? null : errorIn({ error: answer.error }),
  }
}

/** The members of an answer that a meter reads; the messages are stepped over, not built. */
function steppedOver(body: Uint8Array): JsonObject {
  const members: { [key: string]: Json } = {}
  const c = cursor(body)
  const value = () => readJson(spanText(body, readSpan(c))) as Json
  skipSpace(c)
  eachMember(c, ANSWER, key => {
    if (key === 'choices') members.choices = [firstChoice(c)]
    else if (key !== undefined) members[key] = value()
  })
  return members
}

/** Of the choices at the cursor the first, with its end alone. */
function firstChoice(c: Cursor): JsonObject {
  let finish: string | null = null
  if (!atArray(c)) return { finish_reason: finish }
  eachItem(c, index => {
    if (index > 0 || !atObject(c)) return
    eachMember(c, CHOICE, member => {
      if (member === 'finish_reason') finish = readString(c) ?? null
    })
  })
  return { finish_reason: finish }
}
