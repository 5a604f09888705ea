import { readJson } from '../../shared/json/read-json.ts'
import { choice, flag } from '../config/table-fields.ts'
import { fail, type GateInput, type GateVerdict, isTruncated, settled } from './gate.ts'

/** The keys of the kinds that read an answer as JSON. */
export const jsonKeys = {
  fences: flag.default(true),
  on_tool_call: choice(['pass', 'fail', 'abstain']).default('pass'),
}

export const jsonWords = {
  fences: 'Whether JSON in a fenced block counts.',
  on_tool_call: 'What an answer with a tool call counts as.',
}

interface JsonRules {
  readonly fences: boolean
  readonly onToolCall: GateVerdict['verdict']
}

/** The JSON in an answer, or the verdict that needs none. */
export function jsonOf(rules: JsonRules, input: GateInput): GateVerdict | Extract<JsonAnswer, { ok: true }> {
  // Before the tool call: a call that was cut off is no answer either.
  if (isTruncated(input)) return fail('truncated')
  if (input.choice.toolCalls.length > 0) return settled(rules.onToolCall, 'tool_call')
  const read = readJsonAnswer(input.choice.text, rules.fences)
  return read.ok ? read : fail(input.choice.text.trim() === '' ? 'empty' : 'not_json')
}

type JsonAnswer = { readonly ok: true; readonly text: string; readonly value: unknown } | { readonly ok: false }

const NOT_JSON: JsonAnswer = { ok: false }

/** The JSON an answer consists of: the whole text, or one fenced block with nothing but white space around it. */
export function readJsonAnswer(text: string, fences: boolean): JsonAnswer {
  const whole = parse(text)
  if (whole.ok || !fences) return whole
  const inner = fenced(text.trim())
  return inner === undefined ? NOT_JSON : parse(inner)
}

/**
 * What stands between the two fences. A second block inside needs no search: its fence would stand in the JSON outside
 * of any string, where nothing but JSON parses.
 */
function fenced(text: string): string | undefined {
  const mark = text[0]
  if (mark !== '`' && mark !== '~') return undefined
  let width = 0
  while (text[width] === mark) width += 1
  const open = text.indexOf('\n')
  const close = text.lastIndexOf('\n')
  if (width < 3 || open < 0 || close <= open) return undefined
  const last = text.slice(close + 1).trim()
  const closes = last.length >= width && last === mark.repeat(last.length)
  const info = text.slice(width, open)
  return closes && !(mark === '`' && info.includes('`')) ? text.slice(open + 1, close) : undefined
}

function parse(text: string): JsonAnswer {
  try {
    return { ok: true, text, value: readJson(text) as unknown }
  } catch {
    return NOT_JSON
  }
}
