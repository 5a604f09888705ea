import { fail, type GateInput, type GateVerdict, isTruncated, PASS, settled } from './gate.ts'
import type { JsonValidConfig, SchemaConfig } from './gate-config.ts'
import { type JsonAnswer, readJsonAnswer } from './json-answer.ts'

/** The answer is JSON; what is in it does not matter, repeated keys included. */
export function jsonValid(config: JsonValidConfig, input: GateInput): GateVerdict {
  const read = jsonOf(config, input)
  return 'verdict' in read ? read : PASS
}

/** The JSON in an answer, or the verdict that needs none. */
export function jsonOf(
  config: JsonValidConfig | SchemaConfig,
  input: GateInput,
): GateVerdict | Extract<JsonAnswer, { ok: true }> {
  // Before the tool call: a call that was cut off is no answer either.
  if (isTruncated(input)) return fail('truncated')
  if (input.choice.toolCalls.length > 0) return settled(config.onToolCall, 'tool_call')
  const read = readJsonAnswer(input.choice.text, config.fences)
  return read.ok ? read : fail(input.choice.text.trim() === '' ? 'empty' : 'not_json')
}
