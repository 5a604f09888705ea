import { fail } from '../accumulator.ts'
import type { Candidate, ToolCall } from '../candidate.ts'
import { writeJson } from '../json-text.ts'
import type { JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray, isObject } from '../json-value.ts'
import { responsesBilling, responsesFinish, responsesTokens } from './usage.ts'

/** Statuses of a response that is an answer; any other is on its way, or none. */
const ANSWERED = new Set(['completed', 'incomplete'])

/** The candidate in a whole response; leaves through `fail` when an item of it is not one. */
export function responsesCandidate(response: JsonObject): Candidate {
  const status = asString(response.status)
  // Compatible hosts leave the status out of a complete answer.
  if (status !== null && !ANSWERED.has(status)) fail('truncated', `the response is ${status}`)
  const items = asArray(response.output).map(item =>
    isObject(item) ? item : fail('bad_frame', 'an output item is not an object'),
  )
  return {
    dialect: 'responses',
    id: asString(response.id),
    model: asString(response.model),
    choices: [
      {
        index: 0,
        text: partsOf(items, 'output_text', 'text').join(''),
        toolCalls: items.flatMap(toolCallOf),
        refusal: refusalOf(items),
        thinking: items
          .filter(({ type }) => type === 'reasoning')
          .map(thinkingOf)
          .join('\n\n'),
        finish: responsesFinish(response) ?? 'completed',
        extras: extrasOf(items),
      },
    ],
    tokens: isObject(response.usage) ? responsesTokens(response.usage) : null,
    billing: responsesBilling(response),
  }
}

function messageParts({ type, content }: JsonObject): JsonObject[] {
  if (type !== 'message') return []
  if (!isArray(content)) return fail('bad_frame', 'a message has no content')
  return content.map(part => (isObject(part) ? part : fail('bad_frame', 'a content part is not an object')))
}

function partsOf(items: readonly JsonObject[], type: string, member: string): string[] {
  return items
    .flatMap(messageParts)
    .filter(part => part.type === type)
    .map(part => asString(part[member]) ?? fail('bad_frame', `a part of type ${type} has no ${member}`))
}

function refusalOf(items: readonly JsonObject[]): string | null {
  const refusals = partsOf(items, 'refusal', 'refusal')
  return refusals.length === 0 ? null : refusals.join('')
}

/** Tools that have a type in the place of a name, by the calls that the client carries out or decides on. */
const TYPED_TOOLS: Readonly<Record<string, string>> = {
  shell_call: 'shell',
  local_shell_call: 'local_shell',
  apply_patch_call: 'apply_patch',
  computer_call: 'computer',
  tool_search_call: 'tool_search',
  mcp_approval_request: 'mcp',
}

const ranAtProvider = ({ environment, execution }: JsonObject): boolean =>
  execution === 'server' || asObject(environment).type === 'container_reference'

function typedCallOf(item: JsonObject): ToolCall[] {
  const name = TYPED_TOOLS[String(item.type)]
  if (name === undefined || ranAtProvider(item)) return []
  const { call_id: callId, id, action, actions, operation, arguments: args } = item
  const given = action ?? actions ?? operation ?? args ?? {}
  return [{ id: asString(callId ?? id) ?? '', name, arguments: asString(given) ?? writeJson(given) }]
}

function toolCallOf(item: JsonObject): ToolCall[] {
  const { type } = item
  if (type !== 'function_call' && type !== 'custom_tool_call') return typedCallOf(item)
  const text = type === 'function_call' ? 'arguments' : 'input'
  return [
    {
      id: asString(item.call_id) ?? fail('bad_frame', 'a tool call has no call_id'),
      name: asString(item.name) ?? fail('bad_frame', 'a tool call has no name'),
      arguments: asString(item[text]) ?? fail('bad_frame', `a tool call has no ${text}`),
      ...(type === 'custom_tool_call' ? { custom: true as const } : {}),
    },
  ]
}

/** What a model shows of its reasoning: the text itself where a host gives it, else the summary. */
function thinkingOf(item: JsonObject): string {
  const texts = (name: 'content' | 'summary') => asArray(item[name]).map(part => asString(asObject(part).text) ?? '')
  const whole = texts('content')
  return (whole.length > 0 ? whole : texts('summary')).join('\n\n')
}

const READ_ITEMS = new Set(['message', 'function_call', 'custom_tool_call'])
const READ_PARTS = new Set(['output_text', 'refusal'])

/** Names of what another dialect cannot carry. */
function extrasOf(items: readonly JsonObject[]): string[] {
  const extras = items.flatMap(({ type }) => (READ_ITEMS.has(String(type)) ? [] : [String(type)]))
  for (const part of items.flatMap(messageParts)) {
    if (!READ_PARTS.has(String(part.type))) extras.push(String(part.type))
    if (asArray(part.annotations).length > 0) extras.push('annotations')
    if (asArray(part.logprobs).length > 0) extras.push('logprobs')
  }
  return [...new Set(extras)]
}
