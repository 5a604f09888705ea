import { fail, merged } from '../accumulator.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray, isObject } from '../json-value.ts'
import { callId, readContent, writtenText } from './answer.ts'

interface CallParts {
  id: string
  type: string | undefined
  name: string | undefined
  text: string
  rest: JsonObject
}

/** Pieces of these members are joined; of any other unknown member the last value stays, as in the official client. */
const JOINED = new Set(['reasoning_content', 'reasoning', 'reasoning_details', 'annotations'])

export type ChoiceParts = ReturnType<typeof choiceParts>

/** One choice of a chat stream while its pieces come in. */
export function choiceParts(index: number) {
  let role: string | undefined
  let content: string | null = null
  /** What is more than text: all of its parts, in order. */
  let parts: JsonObject[] | undefined
  let refusal: string | null = null
  let finish: string | null = null
  let logprobs: JsonObject | null = null
  let audio: JsonObject | undefined
  let functionCall: { name: string; arguments: string } | undefined
  let other: JsonObject = {}
  let extras: JsonObject = {}
  const calls = callParts(index)

  function addContent(piece: Json): void {
    const { text, problem } = readContent(piece)
    if (problem !== undefined) fail('bad_frame', problem)
    if (isArray(piece)) {
      parts ??= textPart(content ?? '')
      for (const part of piece) parts.push(asObject(part))
    } else parts?.push(...textPart(text))
    content = (content ?? '') + text
  }

  function addDelta(delta: JsonObject): void {
    const { role: who, content: text, refusal: no, tool_calls, function_call, audio: sound, ...rest } = delta
    if (typeof who === 'string' && who !== '') role = who
    if (text !== undefined && text !== null) addContent(text)
    if (typeof no === 'string' && no !== '') refusal = (refusal ?? '') + no
    for (const piece of asArray(tool_calls))
      calls.add(isObject(piece) ? piece : fail('bad_frame', 'a tool call piece is not an object'))
    if (isObject(function_call)) {
      functionCall = {
        name: asString(function_call.name) || (functionCall?.name ?? ''),
        arguments: (functionCall?.arguments ?? '') + (asString(function_call.arguments) ?? ''),
      }
    }
    if (isObject(sound)) audio = joinAudio(audio ?? {}, sound)
    for (const [name, value] of Object.entries(rest))
      extras = merged(extras, { [name]: JOINED.has(name) ? joined(extras[name], value) : value })
  }

  return {
    add(choice: JsonObject): void {
      const { delta, finish_reason, index: _index, logprobs: odds, ...rest } = choice
      other = merged(other, rest)
      if (isObject(odds)) logprobs = joinLogprobs(logprobs, odds)
      if (typeof finish_reason === 'string' && finish_reason !== '') finish = finish_reason
      if (isObject(delta)) addDelta(delta)
    },

    get finish(): string | null {
      return finish
    },

    get text(): string {
      return content ?? ''
    },

    get toolCalls(): number {
      return calls.size + (functionCall === undefined ? 0 : 1)
    },

    /** Official clients can read the pieces so far. */
    get standard(): boolean {
      return calls.standard && calls.areNamed() && role !== undefined
    },

    /** The choice as in an answer that was not streamed, and whether official clients can read its pieces. */
    close(): { choice: JsonObject; standard: boolean } {
      const tools = calls.inOrder()
      const message = {
        ...extras,
        role: role ?? 'assistant',
        content: parts === undefined ? content : joinedParts(parts),
        refusal,
        ...(audio === undefined ? {} : { audio }),
        ...(functionCall === undefined ? {} : { function_call: functionCall }),
        ...(tools.length === 0 ? {} : { tool_calls: tools }),
      }
      return {
        choice: { ...other, index, message, finish_reason: finish, logprobs },
        standard: calls.standard && role !== undefined,
      }
    },
  }
}

/** The tool calls of a choice, whose pieces come in any order. */
function callParts(choice: number) {
  /** By the index the upstream gave; gaps are closed at the end. */
  const calls = new Map<number, CallParts>()
  /** Which index the call of an id has. */
  const places = new Map<string, number>()
  let highest = -1
  let standard = true

  function add(piece: JsonObject): void {
    const id = asString(piece.id) ?? ''
    const part = isObject(piece.custom) ? piece.custom : isObject(piece.function) ? piece.function : {}
    const text = isObject(piece.custom) ? part.input : part.arguments
    const name = asString(part.name) ?? ''
    const call = find(piece.index, id, name !== '' && typeof text === 'string' && text.startsWith('{'))
    if (typeof piece.type === 'string') call.type = piece.type
    if (name !== '') call.name = name
    call.text += writtenText(text) ?? fail('bad_frame', 'the arguments of a tool call are not text')
    if (isObject(text)) standard = false
    const { index: _index, id: _id, type: _type, function: _function, custom: _custom, ...rest } = piece
    call.rest = merged(call.rest, rest)
  }

  function find(given: Json | undefined, id: string, mayBegin: boolean): CallParts {
    let at = typeof given === 'number' && Number.isSafeInteger(given) && given >= 0 ? given : undefined
    const before = at === undefined ? undefined : calls.get(at)
    if (mayBegin && before?.text.endsWith('}') && (id === '' || id !== before.id)) {
      // Gemini's address for OpenAI clients gives all calls of an answer one index. No JSON goes on with `{` behind `}`.
      standard = false
      at = places.get(id) ?? highest + 1
    } else if (at === undefined) {
      // Official clients refuse a piece without an index; a new id opens the next call, anything else goes on with the last.
      standard = false
      at = places.get(id) ?? (id !== '' || highest < 0 ? highest + 1 : highest)
    }
    let call = calls.get(at)
    if (call === undefined) {
      if (at !== calls.size) standard = false
      call = { id: '', type: undefined, name: undefined, text: '', rest: {} }
      calls.set(at, call)
      highest = Math.max(highest, at)
    }
    if (id !== '' && call.id !== id) {
      if (places.get(call.id) === at) places.delete(call.id)
      call.id = id
      if (!places.has(id)) places.set(id, at)
    }
    return call
  }

  return {
    add,

    get size(): number {
      return calls.size
    },

    areNamed: () =>
      [...calls.values()].every(({ id, type, name }) => id !== '' && type !== undefined && name !== undefined),

    /** Official clients can read the pieces so far. After `inOrder`: the calls as a whole. */
    get standard(): boolean {
      return standard
    },

    inOrder(): JsonObject[] {
      const inOrder = [...calls].sort(([a], [b]) => a - b)
      return inOrder.map(([given, { id, type, name, text, rest }], position) => {
        if (given !== position || id === '' || type === undefined || name === undefined) standard = false
        const head = { ...rest, id: id || callId(choice, position), type: type ?? 'function' }
        const named = name ?? fail('bad_frame', 'a tool call has no name')
        return type === 'custom'
          ? { ...head, custom: { name: named, input: text } }
          : { ...head, function: { name: named, arguments: text } }
      })
    },
  }
}

function joined(before: Json | undefined, piece: Json | undefined): Json | undefined {
  if (typeof before === 'string' && typeof piece === 'string') return before + piece
  if (isArray(before) && isArray(piece)) return longer(before, piece)
  return piece === null || piece === undefined ? (before ?? piece) : piece
}

/** Lists that were made here, and may be added to: to copy them for each piece would take quadratic time. */
const own = new WeakSet<readonly Json[]>()

function longer(before: readonly Json[], piece: readonly Json[]): readonly Json[] {
  const list = own.has(before) ? (before as Json[]) : [...before]
  own.add(list)
  for (const one of piece) list.push(one)
  return list
}

const textPart = (text: string): JsonObject[] => (text === '' ? [] : [{ type: 'text', text }])

/** Parts with each text and each thought whole. */
function joinedParts(pieces: readonly JsonObject[]): JsonObject[] {
  const runs: JsonObject[][] = []
  for (const piece of pieces) {
    const isJoined = piece.type === 'text' || piece.type === 'thinking'
    if (isJoined && runs.at(-1)?.[0]?.type === piece.type) runs.at(-1)?.push(piece)
    else runs.push([piece])
  }
  return runs.map(run => {
    const [first = {}] = run
    if (run.length === 1) return first
    const { text, thinking } = readContent(run)
    return { ...first, ...run.at(-1), ...(first.type === 'text' ? { text } : { thinking: textPart(thinking) }) }
  })
}

function joinAudio(before: JsonObject, piece: JsonObject): JsonObject {
  const audio: { [name: string]: Json | undefined } = { ...before }
  for (const name of ['id', 'expires_at']) if (piece[name] != null) audio[name] = piece[name]
  for (const name of ['data', 'transcript']) if (piece[name] != null) audio[name] = joined(before[name], piece[name])
  return audio
}

function joinLogprobs(before: JsonObject | null, piece: JsonObject): JsonObject {
  if (before === null) return piece
  const content = joined(before.content, piece.content)
  const refusal = joined(before.refusal, piece.refusal)
  return {
    ...merged(before, piece),
    ...(content === undefined ? {} : { content }),
    ...(refusal === undefined ? {} : { refusal }),
  }
}
