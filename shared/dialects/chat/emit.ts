import { parseJson } from '../json-text.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray, isObject, without } from '../json-value.ts'
import { sseFrame, sseText } from '../sse-frame.ts'
import { textPieces } from '../text-pieces.ts'

export interface EmitOptions {
  /** The request asked for the usage chunk. */
  readonly includeUsage: boolean
}

/** Members that every chunk of a stream repeats. */
const CONSTANT = ['id', 'created', 'model', 'system_fingerprint', 'service_tier'] as const

/** The frames of a stream that a client turns back into the given answer; the body must be one that `decodeChat` accepts. */
export function emitChat(body: Uint8Array, { includeUsage }: EmitOptions): Uint8Array[] {
  const completion = asObject(parseJson(body))
  const head = {
    ...Object.fromEntries(CONSTANT.flatMap(name => (completion[name] === undefined ? [] : [[name, completion[name]]]))),
    object: 'chat.completion.chunk',
  }
  const rest = without(completion, ...CONSTANT, 'object', 'choices', 'usage')
  const frames: Uint8Array[] = []
  const send = (choices: Json, usage: Json = null): void => {
    const extras = frames.length === 0 ? rest : {}
    frames.push(sseFrame(undefined, { ...head, ...extras, choices, ...(includeUsage ? { usage } : {}) }))
  }
  asArray(completion.choices).forEach((choice, i) => {
    for (const piece of choicePieces(asObject(choice), i)) send([piece])
  })
  if (includeUsage && isObject(completion.usage)) send([], completion.usage)
  frames.push(sseText(undefined, '[DONE]'))
  return frames
}

function choicePieces(choice: JsonObject, position: number): JsonObject[] {
  const { message, finish_reason, index = position, logprobs, ...rest } = choice
  const { role, content, refusal, tool_calls, ...extras } = asObject(message)
  const piece = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
    index,
    delta,
    ...more,
    finish_reason: null,
  })
  const first = {
    role: asString(role) ?? 'assistant',
    content: typeof content === 'string' ? '' : null,
    refusal: null,
  }
  return [
    piece(first),
    ...(isArray(content) ? [piece({ content })] : []),
    // Clients keep the last value of a member they do not know, so such a member goes out in one piece.
    ...Object.entries(extras).map(([name, value]) => piece({ [name]: value })),
    ...withOdds('content', asString(content) ?? '', logprobs).map(([delta, odds]) => piece(delta, odds)),
    ...withOdds('refusal', asString(refusal) ?? '', logprobs).map(([delta, odds]) => piece(delta, odds)),
    ...(isObject(logprobs) && !ODDS.some(name => isArray(logprobs[name])) ? [piece({}, { logprobs })] : []),
    ...asArray(tool_calls).flatMap((call, at) =>
      callPieces(asObject(call), at).map(tool => piece({ tool_calls: [tool] })),
    ),
    { index, delta: {}, ...rest, finish_reason: finish_reason ?? null },
  ]
}

const ODDS = ['content', 'refusal']

/** Pieces of a text; token odds stay on the chunk of their text, so a text that has them goes out in one. */
function withOdds(name: 'content' | 'refusal', text: string, logprobs: Json | undefined): [JsonObject, JsonObject][] {
  const odds = asObject(logprobs)[name]
  if (!isArray(odds)) return textPieces(text).map(part => [{ [name]: part }, {}])
  const rest = Object.fromEntries(Object.entries(asObject(logprobs)).filter(([, value]) => !isArray(value)))
  return [[text === '' ? {} : { [name]: text }, { logprobs: { ...rest, [name]: odds } }]]
}

function callPieces(call: JsonObject, index: number): JsonObject[] {
  const [kind, text] = call.type === 'custom' ? (['custom', 'input'] as const) : (['function', 'arguments'] as const)
  const fn = asObject(call[kind])
  return [
    { index, ...call, [kind]: { ...fn, [text]: '' } },
    { index, [kind]: { [text]: asString(fn[text]) ?? '' } },
  ]
}
