import type { SseFrame } from '../../http/sse-read.ts'
import {
  type Accumulator,
  decodedAnswer,
  decoding,
  fail,
  UNNAMED_ERROR,
  Undecodable,
  upstreamFailed,
} from '../accumulator.ts'
import type { BadResponse, Decoded, UpstreamError } from '../candidate.ts'
import { tryParsePlain } from '../json-text.ts'
import { asArray, asObject, asString, isArray, isObject, type JsonObject, tryParse } from '../json-value.ts'
import { errorIn } from '../upstream-error.ts'
import { responsesCandidate } from './answer.ts'
import { eventSequence } from './sequence.ts'

/** The last event of an answer, which holds all of it. */
const LAST = new Set(['response.completed', 'response.incomplete', 'response.failed'])
const CALLS = new Set(['function_call', 'custom_tool_call'])
/** More items than this are no answer of a model. */
const MAX_ITEMS = 4096

/** Puts a stream of the Responses API together: its last event holds the answer, and the others say how far it has come. */
export function responsesAccumulator(): Accumulator {
  let last: JsonObject | undefined
  let failure: BadResponse | undefined
  let text = ''
  let toolCalls = 0
  let events = 0
  /** Items as they were when they were done: some hosts leave them out of the last event. */
  const done = new Map<number, JsonObject>()
  let added = 0
  const sequence = eventSequence()
  let replayable = true

  function take(event: JsonObject): void {
    const type = asString(event.type)
    events += 1
    if (type === null) {
      replayable = false
      return
    }
    sequence.push(type, event)
    if (LAST.has(type)) {
      const response = isObject(event.response) ? event.response : fail('bad_frame', 'the last event has no response')
      const failed = type === 'response.failed' ? (failureOf(response) ?? UNNAMED_ERROR) : failureOf(response)
      if (failed !== null) throw new Undecodable(upstreamFailed(failed))
      last = response
      replayable &&= sequence.fits(response)
    } else if (type === 'response.output_text.delta') {
      text += asString(event.delta) ?? fail('bad_frame', 'a delta is not text')
    } else if (type === 'response.output_item.added') {
      added += 1
      if (added > MAX_ITEMS) fail('bad_frame', `more than ${MAX_ITEMS} output items`)
      if (CALLS.has(String(asObject(event.item).type))) toolCalls += 1
    } else if (type === 'response.output_item.done') keepItem(event)
  }

  function keepItem({ output_index: at, item }: JsonObject): void {
    if (typeof at !== 'number' || !Number.isSafeInteger(at) || at < 0 || at >= MAX_ITEMS)
      fail('bad_frame', `an output item at index ${String(at)}`)
    done.set(at, isObject(item) ? item : fail('bad_frame', 'an output item is not an object'))
  }

  function close(incomplete: boolean): JsonObject {
    if (last === undefined) {
      if (events === 0) fail('empty', 'the stream ended before its first event')
      fail('truncated', incomplete ? 'the stream ended inside a frame' : 'the stream ended before its last event')
    }
    if (asArray(last.output).length > 0 || done.size === 0) return last
    return { ...last, output: [...done].sort(([a], [b]) => a - b).map(([, item]) => item) }
  }

  return {
    push({ event: name, data, badUtf8 }: SseFrame) {
      // Official clients stumble over an event without data.
      if (data === undefined && name !== undefined) replayable = false
      if (failure !== undefined || data === undefined || data.trim() === '[DONE]') return
      const stopped = decoding(() => {
        if (badUtf8) fail('not_utf8', 'a frame is not UTF-8')
        const event = tryParse(data)
        if (!isObject(event)) fail('not_json', 'a frame is not a JSON object')
        const isError = name === 'error' || event.type === 'error'
        const error = isError || isObject(event.error) ? (errorIn(event) ?? UNNAMED_ERROR) : null
        if (error !== null) throw new Undecodable(upstreamFailed(error))
        if (last !== undefined) {
          // Official clients would take it over what the answer said at its end.
          if (asString(event.type)?.startsWith('response.')) fail('out_of_order', 'an event after the last one')
          return
        }
        // An event that another name stands over is read by the one client and not by the other.
        if (name !== undefined && name !== event.type) replayable = false
        take(event)
      })
      if (stopped !== undefined) failure = stopped
    },

    get failure() {
      return failure
    },

    get progress() {
      return {
        text,
        toolCalls,
        choices: added > 0 ? 1 : 0,
        ending: last !== undefined,
        replayable: replayable && sequence.isSound,
      }
    },

    finish({ incomplete }): Decoded {
      if (failure !== undefined) return failure
      return decoding(() => {
        const body = close(incomplete)
        return decodedAnswer(responsesCandidate(body), body, replayable)
      })
    },
  }
}

/** The candidate in a response that was not streamed; the body stays the bytes that came. */
export function decodeResponses(body: Uint8Array): Decoded {
  return decoding(() => {
    if (body.length === 0) fail('empty', 'the body is empty')
    const response = tryParsePlain(body)
    if (response === undefined) fail('not_json', 'the body is not JSON')
    if (!isObject(response)) fail('not_an_answer', 'the body is not an object')
    const error = failureOf(response) ?? (isArray(response.output) ? null : errorIn(response))
    if (error !== null) throw new Undecodable(upstreamFailed(error))
    if (!isArray(response.output)) fail('not_an_answer', 'the body has no output')
    return { ok: true as const, candidate: responsesCandidate(response), body, replayable: false }
  })
}

/** What a response says of its own failure; null for one that did not fail. */
function failureOf({ status, error = null }: JsonObject): UpstreamError | null {
  const said = errorIn({ error })
  if (said !== null || status !== 'failed') return said
  return { type: null, message: 'The response failed.', code: null, param: null }
}
