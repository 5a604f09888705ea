import { fail, Undecodable, upstreamFailed } from '../accumulator.ts'
import type { Candidate, CandidateChoice, ToolCall } from '../candidate.ts'
import { writeJson } from '../json-text.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray, isObject } from '../json-value.ts'
import { errorIn } from '../upstream-error.ts'
import { chatBilling, chatTokens } from './usage.ts'

/** Members of a message that the candidate has fields for. */
const READ = new Set(['role', 'content', 'refusal', 'tool_calls', 'function_call'])

/** The candidate in a whole chat answer; leaves through `fail` when a choice is not one. */
export function chatCandidate(completion: JsonObject): Candidate {
  const choices = asArray(completion.choices)
  if (choices.length === 0) fail('empty', 'the answer has no choices')
  return {
    dialect: 'chat',
    id: asString(completion.id),
    model: asString(completion.model),
    choices: choices.map((choice, i) =>
      readChoice(isObject(choice) ? choice : fail('bad_frame', 'a choice is not an object'), i),
    ),
    tokens: isObject(completion.usage) ? chatTokens(completion.usage) : null,
    billing: chatBilling(completion),
  }
}

/** Finishes of an answer that its host broke off: OpenRouter's and Mistral's, and DeepSeek's where it has no room for it. */
const BROKEN_OFF: ReadonlySet<Json | undefined> = new Set(['error', 'insufficient_system_resource'])

/** Leaves with the error that ended a choice, which some hosts put into it. */
export function refuseFailed(choice: JsonObject): void {
  const { finish_reason: finish } = choice
  if (!BROKEN_OFF.has(finish)) return
  const message = `The answer ended with the finish_reason ${String(finish)}.`
  throw new Undecodable(upstreamFailed(errorIn(choice) ?? { type: null, message, code: null, param: null }))
}

function readChoice(choice: JsonObject, position: number): CandidateChoice {
  refuseFailed(choice)
  const message = isObject(choice.message) ? choice.message : fail('bad_frame', 'a choice has no message')
  const { text, thinking, others, problem } = readContent(message.content)
  if (problem !== undefined) fail('bad_frame', problem)
  const extras = Object.entries(message).flatMap(([name, value]) => (READ.has(name) || isNothing(value) ? [] : [name]))
  if (isObject(choice.logprobs)) extras.push('logprobs')
  for (const type of new Set(others)) extras.push(`content.${type}`)
  return {
    index: typeof choice.index === 'number' ? choice.index : position,
    text,
    toolCalls: toolCallsOf(message, position),
    refusal: asString(message.refusal),
    thinking: asString(message.reasoning_content) ?? asString(message.reasoning) ?? thinking,
    finish: asString(choice.finish_reason) ?? fail('truncated', `choice ${position} has no finish_reason`),
    extras,
  }
}

interface Content {
  text: string
  thinking: string
  /** The types of parts that are no text. */
  others: string[]
  /** Why it is no content; what can be read of it stands beside it. */
  problem?: string
}

/** Content, or a piece of it: text, or a list of parts, as reasoning models of Mistral write it. */
export function readContent(content: Json | undefined): Content {
  const read: Content = { text: asString(content) ?? '', thinking: '', others: [] }
  if (content === undefined || content === null || typeof content === 'string') return read
  if (!isArray(content)) return { ...read, problem: 'the content is not text' }
  for (const part of content) {
    const { type, text, thinking } = asObject(part)
    if (typeof type !== 'string') read.problem = 'a part of the content has no type'
    else if (type === 'text') read.text += asString(text) ?? ''
    else read.others.push(type)
    if (type === 'thinking')
      read.thinking +=
        asString(thinking) ??
        asArray(thinking)
          .map(one => asString(asObject(one).text) ?? '')
          .join('')
  }
  return read
}

function toolCallsOf(message: JsonObject, choice: number): ToolCall[] {
  const calls = asArray(message.tool_calls).map((call, i) => readToolCall(asObject(call), callId(choice, i)))
  if (!isObject(message.function_call)) return calls
  return [...calls, readFunction('', message.function_call, 'arguments')]
}

/** An id for a call that came without one. */
export function callId(choice: number, position: number): string {
  return `call_${choice}_${position}`
}

/** Names of Mistral's models, also as other hosts serve them. */
export const MISTRAL =
  /(?:^|[/.])(?:open-)?(?:mistral|mixtral|magistral|ministral|codestral|devstral|pixtral|voxtral)(?:[-:@]|$)/i

/** What they want to see between the result of a tool and the next word of the user. */
export const ASSISTANT_FILLER = { role: 'assistant', content: 'OK.' } as const

const SHORT_ID = /^[A-Za-z0-9]{9}$/

/** The id of a call in nine letters and digits, the same for one id each time. */
export function shortCallId(id: string): string {
  if (SHORT_ID.test(id)) return id
  let [high, low] = [0x9e3779b9, 0x85ebca6b]
  for (let at = 0; at < id.length; at++) {
    high = Math.imul(high ^ id.charCodeAt(at), 0x01000193)
    low = Math.imul(low ^ id.charCodeAt(at), 0x5bd1e995) ^ (high >>> 15)
  }
  // 46 bits: they fit into nine digits to the base of 36.
  const bits = (high >>> 0) * 2 ** 14 + ((low >>> 0) & 0x3fff)
  return bits.toString(36).padStart(9, '0')
}

/** Gemini from 3 on refuses the calls of a history without the signatures that they came with; Google's word for one that is not there. */
export const SIGNED_CALLS = /(?:^|[/.])gemini-(?![12]\.)/i
export const NO_SIGNATURE = {
  extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } },
} as const

/** Models that think between calls of tools, and refuse a history without what they thought. */
export const THOUGHT_TURNS =
  /(?:^|[/.])(?:deepseek-(?:reasoner|flash|pro|v[4-9])|kimi-k(?:2-thinking|2[.p][5-9]|[3-9]))/i
/** Thoughts that are not there: an empty text is taken for none. */
export const NO_THOUGHT = { reasoning_content: ' ' } as const

/** The messages of a request whose history is not as its model wrote it, with what that model wants to see in them. */
export function completeHistory<Turn extends object>(messages: readonly Turn[], model: string): readonly Turn[] {
  if (THOUGHT_TURNS.test(model))
    return messages.map(message =>
      'role' in message && message.role === 'assistant' ? { ...message, ...NO_THOUGHT } : message,
    )
  if (!SIGNED_CALLS.test(model)) return messages
  return messages.map(message =>
    'tool_calls' in message && Array.isArray(message.tool_calls)
      ? { ...message, tool_calls: message.tool_calls.map((call: object) => ({ ...call, ...NO_SIGNATURE })) }
      : message,
  )
}

function readToolCall(call: JsonObject, fallbackId: string): ToolCall {
  const id = asString(call.id) || fallbackId
  return call.type === 'custom'
    ? { ...readFunction(id, asObject(call.custom), 'input'), custom: true as const }
    : readFunction(id, asObject(call.function), 'arguments')
}

function readFunction(id: string, fn: JsonObject, text: 'arguments' | 'input'): ToolCall {
  return {
    id,
    name: asString(fn.name) ?? fail('bad_frame', 'a tool call has no name'),
    arguments: writtenText(fn[text]) ?? fail('bad_frame', `a tool call has no ${text}`),
  }
}

/** The arguments of a call: some servers write the object instead of its text (TGI, llama.cpp), and nothing where there are none. */
export function writtenText(given: Json | undefined): string | undefined {
  if (typeof given === 'string') return given
  if (isObject(given)) return writeJson(given)
  return given === null || given === undefined ? '' : undefined
}

function isNothing(value: Json | undefined): boolean {
  return value === undefined || value === null || value === '' || (isArray(value) && value.length === 0)
}
