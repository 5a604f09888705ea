import { isEffort, isThinkingOff } from '../adapt/draft.ts'
import { completeHistory } from '../chat/answer.ts'
import { jsonBytes, tryParseJson } from '../json-text.ts'
import { asObject, asString, isArray, isObject, type Json, type JsonObject } from '../json-value.ts'
import { closedBook, type Ledger, type Leniency, ledger, type Translation } from './ledger.ts'
import { readMessagesHistory, readSystem } from './to-chat-history.ts'
import { offeredTools, readToolList } from './tool-list.ts'

export interface ToChatOptions extends Leniency {
  /** The wire name of the rung's model. */
  readonly model: string
  /** `thinking_policy="strip"`: thinking in the history is left out instead of standing in the way. */
  readonly stripThinking?: boolean
  /** The host knows only the older name of the output limit. */
  readonly legacyMaxTokens?: boolean
}

const MAX_STOPS = 4

const MAPPED = [
  'model',
  'messages',
  'system',
  'max_tokens',
  'metadata',
  'stop_sequences',
  'stream',
  'temperature',
  'top_p',
  'thinking',
  'tool_choice',
  'tools',
  'service_tier',
  'cache_control',
]

/** A messages request as a chat request (dialects 5.2). */
export function requestToChat(body: Uint8Array, options: ToChatOptions): Translation {
  const request = tryParseJson(body)
  if (!isObject(request)) return { ok: false, refused: ['body: expected a JSON object'] }
  const book = ledger(options)
  book.only(request, '', [...MAPPED, ...(book.lenient ? ['output_config', 'output_format'] : [])])
  // Caching is automatic in the chat dialect.
  if (request.cache_control !== undefined) book.drop('cache_control')
  if (request.service_tier === 'auto' || request.service_tier === null) book.drop('service_tier')
  else if (request.service_tier !== undefined) book.advise('service_tier', 'only auto can be translated')
  const system = readSystem(request.system, book)
  const history = readMessagesHistory(request.messages, options.stripThinking === true, book)
  const tools = toolsToChat(request, book)
  const translated = {
    model: options.model,
    messages: completeHistory(
      [...(system === undefined ? [] : [{ role: 'system', content: system }]), ...history],
      options.model,
    ),
    ...limit(request.max_tokens, options.legacyMaxTokens === true, book),
    ...(tools === undefined ? {} : { tools }),
    ...toolChoiceToChat(request.tool_choice, book),
    ...(book.lenient ? outputConfig(request, book) : effort(request.thinking, book)),
    ...sampling(request, book),
    ...stops(request.stop_sequences, book),
    ...user(request.metadata, book),
    ...streaming(request.stream, book),
  }
  return closedBook(book, () => jsonBytes(translated))
}

function limit(maxTokens: Json | undefined, legacy: boolean, book: Ledger): JsonObject {
  if (maxTokens === undefined) return {}
  if (typeof maxTokens !== 'number') book.refuse('max_tokens', 'expected a number')
  if (maxTokens === 0) book.refuse('max_tokens', 'a cache cannot be filled without an answer')
  return legacy ? { max_tokens: maxTokens } : { max_completion_tokens: maxTokens }
}

function effort(thinking: Json | undefined, book: Ledger): JsonObject {
  if (thinking === undefined) return {}
  if (!isObject(thinking)) {
    if (thinking === null) book.drop('thinking')
    else book.refuse('thinking', 'expected an object')
    return {}
  }
  book.only(thinking, 'thinking', ['type', 'budget_tokens', 'display'])
  // Thinking blocks are not part of a translated answer, so how they would look does not matter.
  if (thinking.display !== undefined) book.drop('thinking.display')
  const { type, budget_tokens: budget } = thinking
  if (isThinkingOff(type)) book.drop('thinking')
  else if (type === 'adaptive') return { reasoning_effort: 'medium' }
  else if (type === 'enabled' && typeof budget === 'number') {
    return { reasoning_effort: budget <= 2048 ? 'low' : budget <= 8192 ? 'medium' : 'high' }
  } else book.refuse('thinking', 'expected enabled with a budget, adaptive or disabled')
  return {}
}

/** How a model that thinks on its own is asked to: by an effort, and for an answer of a form. */
function outputConfig({ thinking, output_config: given, output_format }: JsonObject, book: Ledger): JsonObject {
  const config = asObject(given)
  book.only(config, 'output_config', ['effort', 'format'])
  const wished = effort(thinking, book)
  const format = formatOf(config.format ?? output_format, book)
  if (config.effort === undefined) return { ...wished, ...format }
  if (isThinkingOff(asObject(thinking).type) || !isEffort(config.effort)) {
    book.advise('output_config.effort', 'there is no such effort')
    return { ...wished, ...format }
  }
  return { reasoning_effort: config.effort, ...format }
}

function formatOf(format: Json | undefined, book: Ledger): JsonObject {
  if (format === undefined || format === null) return {}
  const { type, schema } = asObject(format)
  if (type === 'json_schema' && isObject(schema))
    return { response_format: { type, json_schema: { name: 'answer', schema, strict: true } } }
  book.refuse('output_config.format', 'expected a schema')
  return {}
}

function sampling(request: JsonObject, book: Ledger): JsonObject {
  const out: { [name: string]: Json } = {}
  for (const name of ['temperature', 'top_p'] as const) {
    const value = request[name]
    if (value === undefined) continue
    if (typeof value === 'number') out[name] = value
    else if (value === null) book.drop(name)
    else book.refuse(name, 'expected a number')
  }
  return out
}

function stops(sequences: Json | undefined, book: Ledger): JsonObject {
  if (sequences === undefined) return {}
  if (sequences === null || (isArray(sequences) && sequences.length === 0)) {
    book.drop('stop_sequences')
    return {}
  }
  if (!isArray(sequences) || sequences.some(entry => typeof entry !== 'string'))
    book.refuse('stop_sequences', 'expected a list of texts')
  else if (sequences.length > MAX_STOPS) book.refuse('stop_sequences', `the chat dialect takes at most ${MAX_STOPS}`)
  return { stop: sequences }
}

function user(metadata: Json | undefined, book: Ledger): JsonObject {
  if (metadata === undefined) return {}
  if (!isObject(metadata)) {
    if (metadata === null) book.drop('metadata')
    else book.refuse('metadata', 'expected an object')
    return {}
  }
  book.only(metadata, 'metadata', ['user_id'])
  if (typeof metadata.user_id === 'string') return { user: metadata.user_id }
  book.drop('metadata')
  return {}
}

/** A translated body is ours, so it asks for the usage chunk and the cost is exact. */
function streaming(stream: Json | undefined, book: Ledger): JsonObject {
  if (stream === true) return { stream, stream_options: { include_usage: true } }
  if (stream === false) return { stream }
  if (stream === null) book.drop('stream')
  else if (stream !== undefined) book.refuse('stream', 'expected true or false')
  return {}
}

/** Tools of the client as function tools; undefined when the request has none. */
function toolsToChat({ tools, tool_choice }: JsonObject, book: Ledger): JsonObject[] | undefined {
  const list = readToolList(tools, book)?.map(asObject)
  if (list === undefined) return undefined
  const { type } = asObject(tool_choice)
  const types = list.map(tool => asString(tool.type) ?? undefined)
  const offered = offeredTools(types, type === 'any' || type === 'tool' ? type : 'auto', book)
  return list.flatMap((tool, i) => {
    const path = `tools[${i}]`
    if (!offered.has(i)) return [toolToChat(tool, path, book)]
    book.advise(path, 'a tool that runs at its provider')
    return []
  })
}

function toolToChat(tool: JsonObject, path: string, book: Ledger): JsonObject {
  const { type, name, description, input_schema, strict } = tool
  if (type !== undefined && type !== null && type !== 'custom') {
    book.refuse(path, `the chat dialect has no ${String(type)} tool`)
    return {}
  }
  book.only(tool, path, ['type', 'name', 'description', 'input_schema', 'strict', 'cache_control'])
  if (tool.cache_control !== undefined) book.drop(`${path}.cache_control`)
  if (asString(name) === null) book.refuse(`${path}.name`, 'expected text')
  if (!isObject(input_schema)) book.refuse(`${path}.input_schema`, 'expected an object')
  if (description === null) book.drop(`${path}.description`)
  if (strict === null) book.drop(`${path}.strict`)
  return {
    type: 'function',
    function: {
      name,
      ...(description == null ? {} : { description }),
      parameters: input_schema,
      ...(strict == null ? {} : { strict }),
    },
  }
}

/** `tool_choice` with its flag for one call at a time, as the two fields of the chat dialect. */
function toolChoiceToChat(choice: Json | undefined, book: Ledger): JsonObject {
  if (choice === undefined) return {}
  if (choice === null) {
    book.drop('tool_choice')
    return {}
  }
  const { type, name, disable_parallel_tool_use: single } = asObject(choice)
  book.only(asObject(choice), 'tool_choice', ['type', 'name', 'disable_parallel_tool_use'])
  const parallel = single === true ? { parallel_tool_calls: false } : {}
  if (single !== undefined && single !== true) book.drop('tool_choice.disable_parallel_tool_use')
  if (type === 'auto' || type === 'none') return { tool_choice: type, ...parallel }
  if (type === 'any') return { tool_choice: 'required', ...parallel }
  if (type === 'tool' && typeof name === 'string')
    return { tool_choice: { type: 'function', function: { name } }, ...parallel }
  book.refuse('tool_choice', 'expected auto, any, none or a named tool')
  return {}
}
