import { fail } from '../accumulator.ts'
import type { Candidate, ToolCall } from '../candidate.ts'
import { writeJson } from '../json-text.ts'
import { asArray, asObject, asString, isObject, type JsonObject } from '../json-value.ts'
import { type MessagesUsage, messagesUsage } from './usage.ts'

/** One block of an answer; `input` is the text of a tool input when it is not the block's own. */
export interface AnswerBlock {
  readonly block: JsonObject
  readonly input?: string
}

/**
 * The candidate in a whole messages answer; leaves through `fail` when a block or the stop reason is not one. A stream brings
 * the usage of all its frames, some of which its answer does not show.
 */
export function messagesCandidate(
  message: JsonObject,
  blocks: readonly AnswerBlock[],
  usage: MessagesUsage = usageOf(message),
): Candidate {
  const finish = asString(message.stop_reason) ?? fail('truncated', 'the answer has no stop_reason')
  const toolCalls: ToolCall[] = []
  const extras = new Set<string>()
  let text = ''
  let thinking = ''
  for (const { block, input } of blocks) {
    switch (block.type) {
      case 'text':
        text += asString(block.text) ?? fail('bad_frame', 'a text block has no text')
        if (asArray(block.citations).length > 0) extras.add('citations')
        break
      case 'thinking':
        thinking += asString(block.thinking) ?? fail('bad_frame', 'a thinking block has no text')
        extras.add('thinking')
        break
      case 'tool_use':
        toolCalls.push({
          id: asString(block.id) ?? fail('bad_frame', 'a tool_use block has no id'),
          name: asString(block.name) ?? fail('bad_frame', 'a tool_use block has no name'),
          arguments:
            input ??
            (isObject(block.input) ? writeJson(block.input) : fail('bad_tool_json', 'a tool input is not an object')),
        })
        break
      default:
        extras.add(asString(block.type) ?? fail('bad_frame', 'a content block has no type'))
    }
  }
  for (const { block } of blocks) usage.fellBack(fallbackOf(block))
  const billing = usage.billing()
  return {
    dialect: 'messages',
    id: asString(message.id),
    model: billing.fallback ?? asString(message.model),
    choices: [
      { index: 0, text, toolCalls, refusal: finish === 'refusal' ? text : null, thinking, finish, extras: [...extras] },
    ],
    tokens: usage.tokens(),
    billing,
  }
}

function usageOf(message: JsonObject): MessagesUsage {
  const usage = messagesUsage()
  if (isObject(message.usage)) usage.see(message.usage)
  return usage
}

/** Stop reasons at which the last block may be unfinished. */
export const CUT_SHORT: ReadonlySet<string> = new Set(['max_tokens', 'model_context_window_exceeded', 'refusal'])

/** The model that the provider goes on with after the one before it declined. The start of a stream cannot name it yet. */
export const fallbackOf = ({ type, to }: JsonObject): string | null =>
  type === 'fallback' ? asString(asObject(to).model) : null
