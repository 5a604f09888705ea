import type { SseFrame } from '../../http/sse-read.ts'
import type { Accumulator, AccumulatorOptions } from '../accumulator.ts'
import { decodedAnswer, decoding, fail, merged, UNNAMED_ERROR, Undecodable, upstreamFailed } from '../accumulator.ts'
import type { BadResponse, Decoded } from '../candidate.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { isArray, isObject, tryParse } from '../json-value.ts'
import { errorIn } from '../upstream-error.ts'
import { chatCandidate, refuseFailed } from './answer.ts'
import type { ChoiceParts } from './choice.ts'
import { choiceParts } from './choice.ts'
import { chatTokens, usageOf } from './usage.ts'

const DONE = '[DONE]'
/** The largest `n` of the API, and with it the bound on what a stream can make us keep. */
const MAX_CHOICES = 128

/** Puts a chat stream together, by dialects 2.1; the result is what the official client would build. */
export function chatAccumulator({ expectedChoices = 1 }: AccumulatorOptions = {}): Accumulator {
  let top: JsonObject | undefined
  let usage: Json | undefined
  let done = false
  let replayable = true
  let failure: BadResponse | undefined
  const choices = new Map<number, ChoiceParts>()

  function takeChunk(chunk: JsonObject): void {
    const { choices: pieces, usage: _usage, obfuscation: _padding, ...rest } = chunk
    const counted = usageOf(chunk)
    if (top === undefined) top = rest
    else if (chunk.id) top = merged(top, rest)
    // The last one counts, of those that count anything.
    if (isObject(counted) ? !isObject(usage) || chatTokens(counted) !== null : usage === undefined) usage = counted
    if (!isArray(pieces)) {
      // Official clients iterate over the choices of every chunk.
      replayable = false
      return
    }
    for (const piece of pieces) takeChoice(isObject(piece) ? piece : fail('bad_frame', 'a choice is not an object'))
  }

  function takeChoice(piece: JsonObject): void {
    const index = indexOf(piece.index)
    const choice = choices.get(index) ?? choiceParts(index)
    choices.set(index, choice)
    choice.add(piece)
    refuseFailed(piece)
  }

  function indexOf(given: Json | undefined): number {
    if (given === undefined && expectedChoices === 1) {
      replayable = false
      return 0
    }
    if (typeof given === 'number' && Number.isSafeInteger(given) && given >= 0 && given < MAX_CHOICES) return given
    return fail('bad_frame', `a choice with index ${String(given)}`)
  }

  function close(incomplete: boolean): JsonObject {
    if (top === undefined) fail('empty', 'the stream ended before its first chunk')
    if (!done && incomplete) fail('truncated', 'the stream ended inside a frame')
    const inOrder = choicesInOrder(choices, done ? 0 : expectedChoices)
    const closed = inOrder.map(choice => choice.close())
    if (closed.some(({ standard }) => !standard)) replayable = false
    const { system_fingerprint, ...rest } = top
    return {
      ...rest,
      object: 'chat.completion',
      ...(system_fingerprint ? { system_fingerprint } : {}),
      choices: closed.map(({ choice }) => choice),
      ...(usage === undefined ? {} : { usage }),
    }
  }

  return {
    push(frame: SseFrame) {
      if (failure !== undefined || done || frame.data === undefined) return
      const { event, data: text, badUtf8 } = frame
      if (text.trim() === DONE) {
        done = true
        if (text !== DONE) replayable = false
        return
      }
      const stopped = decoding(() => {
        if (badUtf8) fail('not_utf8', 'a frame is not UTF-8')
        const chunk = tryParse(text)
        if (!isObject(chunk)) fail('not_json', 'a frame is not a JSON object')
        const error = errorIn(chunk) ?? (event === 'error' ? UNNAMED_ERROR : null)
        if (error !== null) throw new Undecodable(upstreamFailed(error))
        takeChunk(chunk)
      })
      if (stopped !== undefined) failure = stopped
    },

    get failure() {
      return failure
    },

    get progress() {
      const first = choices.get(0)
      return {
        text: first?.text ?? '',
        toolCalls: first?.toolCalls ?? 0,
        choices: choices.size,
        ending: done || [...choices.values()].some(({ finish }) => finish !== null),
        replayable: replayable && [...choices.values()].every(({ standard }) => standard),
      }
    },

    finish({ incomplete }): Decoded {
      if (failure !== undefined) return failure
      return decoding(() => {
        const body = close(incomplete)
        return decodedAnswer(chatCandidate(body), body, replayable)
      })
    },
  }
}

/** The finished choices of a stream, without gaps; at least so many. */
function choicesInOrder(choices: ReadonlyMap<number, ChoiceParts>, least: number): ChoiceParts[] {
  const inOrder = [...choices].sort(([a], [b]) => a - b)
  if (inOrder.length === 0) fail('empty', 'the stream has no choices')
  for (const [index, choice] of inOrder)
    if (choice.finish === null) fail('truncated', `choice ${index} has no finish_reason`)
  if (inOrder.length < least) fail('truncated', `${inOrder.length} of ${least} choices arrived`)
  if (inOrder.at(-1)?.[0] !== inOrder.length - 1) fail('bad_frame', 'the choices have gaps in their numbers')
  return inOrder.map(([, choice]) => choice)
}
