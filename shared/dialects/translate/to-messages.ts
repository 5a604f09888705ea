import { jsonBytes, tryParseJson } from '../json-text.ts'
import { asObject, asString, isArray, isObject, type Json, type JsonObject } from '../json-value.ts'
import { endsWithToolResult, readEffort } from './effort.ts'
import { closedBook, type Ledger, type Leniency, ledger, type Translation } from './ledger.ts'
import { readChatHistory } from './to-messages-history.ts'
import { readToolList } from './tool-list.ts'

export interface ToMessagesOptions extends Leniency {
  /** The wire name of the rung's model. */
  readonly model: string
  /** Used when the request sets no limit: the messages dialect must have one. */
  readonly maxOutputTokens?: number | undefined
  /** A gate of the route checks the format of the answer. */
  readonly jsonByGate?: boolean
  /** The model is known to take a schema for its answer. */
  readonly structuredOutput?: boolean | undefined
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

/** Of these, wishes of which any value may be left out with a note. */
const ADVISORY: ReadonlySet<string> = new Set([
  'store',
  'service_tier',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'prediction',
])

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
  const book = ledger(options)
  book.only(request, '', [...MAPPED, ...Object.keys(WITHOUT_EFFECT)])
  for (const [name, harmless] of Object.entries(WITHOUT_EFFECT)) {
    const value = request[name]
    if (value === undefined) continue
    if (value === null || harmless(value)) book.drop(name)
    else if (ADVISORY.has(name)) book.advise(name, 'the messages dialect cannot do this')
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
  const format = readFormat(request.response_format, options, book)
  const config = { ...outputConfig, ...format }
  const translated = {
    model: options.model,
    max_tokens: maxTokens,
    ...(system === undefined ? {} : { system }),
    messages: turns,
    ...(tools === undefined ? {} : { tools }),
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(Object.keys(config).length === 0 ? {} : { output_config: config }),
    ...sampling(request, thinking !== undefined && thinking.type !== 'disabled', book),
    ...stopSequences(request.stop, book),
    ...user(request.user, book),
    ...streaming(request.stream, book),
  }
  return closedBook(book, () => jsonBytes(translated))
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
    else if (name === 'temperature' && thinks && value !== 1) book.advise(name, 'thinking allows only 1')
    else if (name === 'temperature' && value > 1) {
      book.advise(name, 'the messages dialect goes up to 1', '1')
      out[name] = 1
    } else out[name] = value
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
  const visible = entries.filter((entry, i) => {
    if (typeof entry === 'string' && entry.trim() !== '') return true
    if (typeof entry === 'string') book.advise(`stop[${i}]`, 'the messages dialect needs visible text')
    else book.refuse(`stop[${i}]`, 'expected text')
    return false
  })
  return visible.length === 0 ? {} : { stop_sequences: visible }
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

/** The form of the answer is no wish: it is said in the words of the dialect, left to a gate, or it stands in the way. */
function readFormat(
  format: Json | undefined,
  { jsonByGate, structuredOutput, lenient }: ToMessagesOptions,
  book: Ledger,
): JsonObject {
  if (format === undefined) return {}
  const { type, json_schema } = asObject(format)
  const isJson = type === 'json_schema' || type === 'json_object'
  if (format === null || type === 'text' || (jsonByGate === true && isJson)) {
    book.drop('response_format')
    return {}
  }
  const { schema } = asObject(json_schema)
  if (lenient === true && structuredOutput === true && type === 'json_schema' && isObject(schema)) {
    return { format: { type, schema } }
  }
  book.refuse('response_format', 'only a schema or json gate of the route could stand in for it (json_by_gate)')
  return {}
}

/** Function tools as messages tools; undefined when the request has none. */
function toolsToMessages(tools: Json | undefined, book: Ledger): JsonObject[] | undefined {
  return readToolList(tools, book)?.map((tool, i) => toolToMessages(asObject(tool), `tools[${i}]`, book))
}

function toolToMessages(tool: JsonObject, path: string, book: Ledger): JsonObject {
  if (tool.type !== 'function' || !isObject(tool.function)) {
    book.refuse(path, 'only function tools can be translated')
    return {}
  }
  const { cache_control: cache } = tool
  book.only(tool, path, ['type', 'function', ...(book.lenient ? ['cache_control'] : [])])
  const { name, description, parameters, strict } = tool.function
  book.only(tool.function, `${path}.function`, ['name', 'description', 'parameters', 'strict'])
  if (asString(name) === null) book.refuse(`${path}.function.name`, 'expected text')
  if (description === null) book.drop(`${path}.function.description`)
  if (parameters === null) book.drop(`${path}.function.parameters`)
  if (strict === null) book.drop(`${path}.function.strict`)
  return {
    name,
    ...(description == null ? {} : { description }),
    input_schema: parameters ?? { type: 'object' },
    ...(strict == null ? {} : { strict }),
    ...(book.lenient && isObject(cache) ? { cache_control: cache } : {}),
  }
}

/** `tool_choice` and `parallel_tool_calls`, which the messages dialect keeps in one place. */
function toolChoiceToMessages(request: JsonObject, hasTools: boolean, book: Ledger): JsonObject | undefined {
  const { parallel_tool_calls: parallel } = request
  const choice = readChoice(request.tool_choice, hasTools, book)
  if (parallel === undefined) return choice
  if (parallel !== false || !hasTools || choice?.type === 'none') {
    if (parallel !== null && typeof parallel !== 'boolean') book.refuse('parallel_tool_calls', 'expected true or false')
    // One call at a time needs tools to call; several at a time is what the messages dialect does anyway.
    else book.drop('parallel_tool_calls')
    return choice
  }
  return { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
}

function readChoice(choice: Json | undefined, hasTools: boolean, book: Ledger): JsonObject | undefined {
  if (choice === undefined) return undefined
  if (choice === null || (!hasTools && (choice === 'auto' || choice === 'none'))) {
    book.drop('tool_choice')
    return undefined
  }
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required' && hasTools) return { type: 'any' }
  const named = isObject(choice) && choice.type === 'function' ? asObject(choice.function) : {}
  const name = asString(named.name)
  if (!isObject(choice) || name === null || !hasTools) {
    book.refuse('tool_choice', 'expected auto, none, required or a function, with tools to choose from')
    return undefined
  }
  book.only(choice, 'tool_choice', ['type', 'function'])
  book.only(named, 'tool_choice.function', ['name'])
  return { type: 'tool', name }
}
