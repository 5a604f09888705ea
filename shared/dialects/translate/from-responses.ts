import { completeHistory } from '../chat/answer.ts'
import { jsonBytes, tryParseJson } from '../json-text.ts'
import { asArray, asObject, asString, isObject, type Json, type JsonObject, without } from '../json-value.ts'
import { readResponsesInput } from './from-responses-input.ts'
import { closedBook, type Ledger, type Leniency, ledger, type Translation } from './ledger.ts'
import { requestToMessages, type ToMessagesOptions } from './to-messages.ts'
import { offeredTools, readToolList } from './tool-list.ts'

export interface FromResponsesOptions extends Leniency {
  /** The wire name of the rung's model. */
  readonly model: string
  /** Reasoning of earlier turns may be left out, although its maker would read it. */
  readonly stripThinking?: boolean
  /** The host knows `max_tokens` only. */
  readonly legacyMaxTokens?: boolean
}

/** Fields without a counterpart: dropped with a value that changes nothing of the answer, refused with any other. */
const WITHOUT_EFFECT: Readonly<Record<string, (value: Json) => boolean>> = {
  background: value => value === false,
  client_metadata: () => true,
  conversation: () => false,
  max_tool_calls: () => true,
  metadata: () => true,
  previous_response_id: () => false,
  prompt: () => false,
  prompt_cache_key: () => true,
  prompt_cache_options: () => true,
  prompt_cache_retention: () => true,
  safety_identifier: () => true,
  service_tier: value => value === 'auto' || value === 'default',
  stream_options: () => true,
  top_logprobs: value => value === 0,
  truncation: value => value === 'disabled',
}

/** Of these, wishes of which another value may be left out with a note. */
const ADVISORY: ReadonlySet<string> = new Set(['service_tier', 'truncation'])

const MAPPED = [
  'model',
  'input',
  'instructions',
  'stream',
  'store',
  'include',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'max_output_tokens',
  'temperature',
  'top_p',
  'reasoning',
  'text',
  'user',
]

/** A request of the Responses API as a chat request (dialects 5.4). */
export function responsesToChat(body: Uint8Array, options: FromResponsesOptions): Translation {
  const book = ledger(options)
  const { verbosity, ...request } = chatOf(body, options, book)
  const messages = completeHistory(asArray(request.messages).map(asObject), options.model)
  return closedBook(book, () => jsonBytes({ ...request, messages, ...(verbosity === undefined ? {} : { verbosity }) }))
}

/** The same as a messages request: what is left of it as a chat request goes on from there. */
export function responsesToMessages(body: Uint8Array, options: FromResponsesOptions & ToMessagesOptions): Translation {
  const book = ledger(options)
  // A wish that the messages dialect has no word for.
  const { verbosity, ...request } = chatOf(body, options, book)
  if (verbosity !== undefined) book.drop('text.verbosity')
  const made = closedBook(book, () => jsonBytes(request))
  if (!made.ok) return made
  const translated = requestToMessages(made.body, options)
  if (!translated.ok) return translated
  const { dropped, notes } = translated
  return { ...translated, dropped: [...made.dropped, ...dropped], notes: [...made.notes, ...notes] }
}

function chatOf(body: Uint8Array, options: FromResponsesOptions, book: Ledger): JsonObject {
  const request = tryParseJson(body)
  if (!isObject(request)) {
    book.refuse('body', 'expected a JSON object')
    return {}
  }
  book.only(request, '', [...MAPPED, ...Object.keys(WITHOUT_EFFECT)])
  for (const [name, harmless] of Object.entries(WITHOUT_EFFECT)) {
    const value = request[name]
    if (value === undefined) continue
    if (value === null || harmless(value)) book.drop(name)
    else if (ADVISORY.has(name)) book.advise(name, 'only the Responses API can do this')
    else book.refuse(name, 'only the Responses API can do this')
  }
  if (request.store === false) book.drop('store')
  else book.refuse('store', 'the answer could not be kept for later, which is the default: expected false')
  readInclude(request.include, book)
  const messages = [
    ...readInstructions(request.instructions, book),
    ...readResponsesInput(request.input, options.stripThinking === true, book),
  ]
  const tools = toolsFromResponses(request, book)
  const limit = options.legacyMaxTokens === true ? 'max_tokens' : 'max_completion_tokens'
  return {
    model: options.model,
    messages,
    ...(tools === undefined ? {} : { tools }),
    ...toolChoiceFromResponses(request, tools !== undefined, book),
    ...present('max_output_tokens', limit, request, book),
    ...present('temperature', 'temperature', request, book),
    ...present('top_p', 'top_p', request, book),
    ...present('user', 'user', request, book),
    ...readReasoning(request.reasoning, book),
    ...readText(request.text, book),
    ...(request.stream === true ? { stream: true, stream_options: { include_usage: true } } : {}),
  }
}

/** A member under its other name; one that is null says nothing. */
function present(name: string, chatName: string, request: JsonObject, book: Ledger): JsonObject {
  const value = request[name]
  if (value === null) book.drop(name)
  return value === undefined || value === null ? {} : { [chatName]: value }
}

function readInstructions(instructions: Json | undefined, book: Ledger): JsonObject[] {
  if (instructions === null) book.drop('instructions')
  if (instructions === undefined || instructions === null || instructions === '') return []
  if (typeof instructions !== 'string') book.refuse('instructions', 'expected text')
  return [{ role: 'system', content: instructions }]
}

/** What is to be shown of tools that run at the provider, which are refused anyhow, and of reasoning, which is not handed on. */
function readInclude(include: Json | undefined, book: Ledger): void {
  asArray(include).forEach((name, i) => {
    if (name === 'message.output_text.logprobs') book.refuse(`include[${i}]`, 'the answer would have no logprobs')
    else book.drop(`include[${i}]`)
  })
}

function readReasoning(reasoning: Json | undefined, book: Ledger): JsonObject {
  if (!isObject(reasoning)) {
    if (reasoning === null) book.drop('reasoning')
    else if (reasoning !== undefined) book.refuse('reasoning', 'expected an object')
    return {}
  }
  book.only(reasoning, 'reasoning', ['effort', 'summary', 'generate_summary'])
  for (const name of ['summary', 'generate_summary']) if (reasoning[name] !== undefined) book.drop(`reasoning.${name}`)
  return reasoning.effort == null ? {} : { reasoning_effort: reasoning.effort }
}

function readText(text: Json | undefined, book: Ledger): JsonObject {
  if (!isObject(text)) {
    if (text === null) book.drop('text')
    else if (text !== undefined) book.refuse('text', 'expected an object')
    return {}
  }
  book.only(text, 'text', ['format', 'verbosity'])
  return { ...readFormat(text.format, book), ...(text.verbosity == null ? {} : { verbosity: text.verbosity }) }
}

function readFormat(format: Json | undefined, book: Ledger): JsonObject {
  const type = isObject(format) ? asString(format.type) : null
  if (format === undefined || format === null || type === 'text') return {}
  if (isObject(format) && type === 'json_schema') {
    const { type: _, ...schema } = format
    book.only(format, 'text.format', ['type', 'name', 'description', 'schema', 'strict'])
    return { response_format: { type, json_schema: schema } }
  }
  if (type === 'json_object') return { response_format: { type } }
  book.refuse('text.format', 'expected text, json_object or json_schema')
  return {}
}

/** Tools that the client runs, as chat tools; undefined when the request has none. */
function toolsFromResponses({ tools, tool_choice }: JsonObject, book: Ledger): JsonObject[] | undefined {
  const list = readToolList(tools, book)?.map(asObject)
  if (list === undefined) return undefined
  const types = list.map(tool => asString(tool.type) ?? undefined)
  const offered = offeredTools(types, tool_choice, book)
  return list.flatMap((tool, i) => {
    const path = `tools[${i}]`
    if (!offered.has(i)) return [readTool(tool, path, book)]
    book.advise(path, `a tool of type ${String(tool.type)} runs at its provider`)
    return []
  })
}

function readTool(tool: JsonObject, path: string, book: Ledger): JsonObject {
  if (tool.type === 'function') {
    book.only(tool, path, ['type', 'name', 'description', 'parameters', 'strict'])
    return { type: 'function', function: given(without(tool, 'type')) }
  }
  if (tool.type === 'custom') {
    book.only(tool, path, ['type', 'name', 'description', 'format'])
    const format = toolFormat(tool.format, `${path}.format`, book)
    return { type: 'custom', custom: given({ ...without(tool, 'type', 'format'), format }) }
  }
  book.refuse(path, `a tool of type ${String(tool.type)} runs at its provider`)
  return {}
}

function toolFormat(format: Json | undefined, path: string, book: Ledger): JsonObject | undefined {
  if (format === undefined || format === null) return undefined
  const { type, syntax, definition } = asObject(format)
  if (type === 'text') return { type }
  if (type === 'grammar') return { type, grammar: { syntax, definition } }
  book.refuse(path, 'expected text or a grammar')
  return undefined
}

const given = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== undefined))

/** `tool_choice` and `parallel_tool_calls`, neither of which chat takes without tools. */
function toolChoiceFromResponses(request: JsonObject, hasTools: boolean, book: Ledger): JsonObject {
  const { tool_choice: choice, parallel_tool_calls: parallel } = request
  const several = hasTools && typeof parallel === 'boolean' ? { parallel_tool_calls: parallel } : {}
  if (parallel !== undefined && several.parallel_tool_calls === undefined) book.drop('parallel_tool_calls')
  if (choice === undefined) return several
  if (choice === null || (!hasTools && (choice === 'auto' || choice === 'none'))) {
    book.drop('tool_choice')
    return several
  }
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { ...several, tool_choice: choice }
  const { type, name } = asObject(choice)
  if (isObject(choice) && asString(name) !== null && (type === 'function' || type === 'custom')) {
    book.only(choice, 'tool_choice', ['type', 'name'])
    return { ...several, tool_choice: { type, [type]: { name } } }
  }
  book.refuse('tool_choice', 'expected auto, none, required or one tool of the client')
  return several
}
