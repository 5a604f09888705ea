import { fail } from '../accumulator.ts'
import type { Candidate, CandidateChoice, ToolCall } from '../candidate.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray, isObject } from '../json-value.ts'
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

function readChoice(choice: JsonObject, position: number): CandidateChoice {
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
    arguments: asString(fn[text]) ?? fail('bad_frame', `a tool call has no ${text}`),
  }
}

function isNothing(value: Json | undefined): boolean {
  return value === undefined || value === null || value === '' || (isArray(value) && value.length === 0)
}
