import { jsonBytes, tryParseJson } from '../json-text.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asString, isArray, isObject } from '../json-value.ts'
import { endsWithToolResult, readEffort } from './effort.ts'
import type { Ledger, Translation } from './ledger.ts'
import { ledger } from './ledger.ts'
import { readChatHistory } from './to-messages-history.ts'
import { toolChoiceToMessages, toolsToMessages } from './to-messages-tools.ts'

export interface ToMessagesOptions {
  /** The wire name of the rung's model. */
  readonly model: string
  /** Used when the request sets no limit: the messages dialect must have one. */
  readonly maxOutputTokens?: number | undefined
  /** A gate of the route checks the format of the answer. */
  readonly jsonByGate?: boolean
}

const isZero = (value: Json): boolean => value === 0
const isFalse = (value: Json): boolean => value === false
const isOnly =
  (word: string) =>
  (value: Json): boolean =>
    value === word

/** Fields without a counterpart: dropped with a value that changes nothing, refused with any other. */
const WITHOUT_EFFECT: Readonly<Record<string, (value: Json) => boolean>> = {
  metadata: () => true,
  prompt_cache_key: () => true,
  store: isFalse,
  service_tier: isOnly('auto'),
  n: value => value === 1,
  logprobs: isFalse,
  top_logprobs: () => false,
  logit_bias: value => isObject(value) && Object.keys(value).length === 0,
  seed: () => false,
  presence_penalty: isZero,
  frequency_penalty: isZero,
  audio: () => false,
  modalities: value => isArray(value) && value.length === 1 && value[0] === 'text',
  prediction: () => false,
  web_search_options: () => false,
  functions: () => false,
  function_call: () => false,
}

const MAPPED = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'max_completion_tokens',
  'max_tokens',
  'stop',
  'temperature',
  'top_p',
  'reasoning_effort',
  'response_format',
  'user',
]

/** A chat request as a messages request (dialects 5.1). */
export function requestToMessages(body: Uint8Array, options: ToMessagesOptions): Translation {
  const request = tryParseJson(body)
  if (!isObject(request)) return { ok: false, refused: ['body: expected a JSON object'] }
  const book = ledger()
  book.only(request, '', [...MAPPED, ...Object.keys(WITHOUT_EFFECT)])
  for (const [name, harmless] of Object.entries(WITHOUT_EFFECT)) {
    const value = request[name]
    if (value === undefined) continue
    if (value === null || harmless(value)) book.drop(name)
    else book.refuse(name, 'the messages dialect cannot do this')
  }
  const maxTokens = readMaxTokens(request, options, book)
  const { system, turns } = readChatHistory(request.messages, book)
  const tools = toolsToMessages(request.tools, book)
  const toolChoice = toolChoiceToMessages(request, tools !== undefined, book)
  const isForced = toolChoice?.type === 'any' || toolChoice?.type === 'tool'
  const { thinking, outputConfig } = readEffort(
    request.reasoning_effort,
    { model: options.model, maxTokens, isForced, afterTools: endsWithToolResult(turns) },
    book,
  )
  readStreamOptions(request.stream_options, book)
  readFormat(request.response_format, options.jsonByGate === true, book)
  const translated = {
    model: options.model,
    max_tokens: maxTokens,
    ...(system === undefined ? {} : { system }),
    messages: turns,
    ...(tools === undefined ? {} : { tools }),
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(outputConfig === undefined ? {} : { output_config: outputConfig }),
    ...sampling(request, thinking !== undefined && thinking.type !== 'disabled', book),
    ...stopSequences(request.stop, book),
    ...user(request.user, book),
    ...streaming(request.stream, book),
  }
  if (book.refused.length > 0) return { ok: false, refused: book.refused }
  return { ok: true, body: jsonBytes(translated), dropped: book.dropped }
}

function readMaxTokens(request: JsonObject, { maxOutputTokens }: ToMessagesOptions, book: Ledger): number {
  const given = [request.max_completion_tokens ?? undefined, request.max_tokens ?? undefined].filter(
    value => value !== undefined,
  )
  const [first = maxOutputTokens, second = first] = given
  if (first !== second) book.refuse('max_tokens', 'differs from max_completion_tokens')
  if (typeof first === 'number') return first
  book.refuse(
    'max_tokens',
    first === undefined ? 'the messages dialect needs a limit, and the model has none set' : 'expected a number',
  )
  return 0
}

function sampling(request: JsonObject, thinks: boolean, book: Ledger): JsonObject {
  const out: { [name: string]: Json } = {}
  for (const name of ['temperature', 'top_p'] as const) {
    const value = request[name]
    if (value === undefined) continue
    if (value === null) book.drop(name)
    else if (typeof value !== 'number') book.refuse(name, 'expected a number')
    else if (name === 'temperature' && value > 1) book.refuse(name, 'the messages dialect goes up to 1')
    else if (name === 'temperature' && thinks && value !== 1) book.refuse(name, 'thinking allows only 1')
    else out[name] = value
  }
  return out
}

function stopSequences(stop: Json | undefined, book: Ledger): JsonObject {
  if (stop === undefined) return {}
  const entries = typeof stop === 'string' ? [stop] : isArray(stop) ? stop : []
  if (stop === null || (isArray(stop) && stop.length === 0)) {
    book.drop('stop')
    return {}
  }
  if (entries.length === 0) book.refuse('stop', 'expected text or a list of texts')
  entries.forEach((entry, i) => {
    if (typeof entry !== 'string' || entry.trim() === '')
      book.refuse(`stop[${i}]`, 'the messages dialect needs visible text')
  })
  return { stop_sequences: entries }
}

function user(value: Json | undefined, book: Ledger): JsonObject {
  if (value === undefined) return {}
  if (typeof value === 'string') return { metadata: { user_id: value } }
  if (value === null) book.drop('user')
  else book.refuse('user', 'expected text')
  return {}
}

function streaming(stream: Json | undefined, book: Ledger): JsonObject {
  if (typeof stream === 'boolean') return { stream }
  if (stream === null) book.drop('stream')
  else if (stream !== undefined) book.refuse('stream', 'expected true or false')
  return {}
}

/** A messages stream always has its usage, and what a client is sent is decided when the answer is written. */
function readStreamOptions(options: Json | undefined, book: Ledger): void {
  if (options === undefined) return
  if (!isObject(options)) {
    if (options === null) book.drop('stream_options')
    else book.refuse('stream_options', 'expected an object')
    return
  }
  book.only(options, 'stream_options', ['include_usage', 'include_obfuscation'])
  for (const name of Object.keys(options)) book.drop(`stream_options.${name}`)
}

function readFormat(format: Json | undefined, byGate: boolean, book: Ledger): void {
  if (format === undefined) return
  const type = isObject(format) ? asString(format.type) : null
  if (format === null || type === 'text' || (byGate && (type === 'json_schema' || type === 'json_object')))
    book.drop('response_format')
  else book.refuse('response_format', 'only a schema or json gate of the route could stand in for it (json_by_gate)')
}
