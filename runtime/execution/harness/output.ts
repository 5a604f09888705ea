import { isDeeper } from '../../../shared/http/validate.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { schemaCheck } from '../../json-schema/schema-check.ts'
import { SchemaProblem } from '../../json-schema/usable-schema.ts'
import { RunFailure } from '../failure.ts'
import { inexactProblem } from '../inexact-problem.ts'
import { MOST_LEVELS } from '../journal/well-formed.ts'

export type OutputCheck = { ok: true; output: Record<string, unknown> } | { ok: false; problem: string }

/** Reads a final text against the manifest's schema. Made once per run: compiling a schema costs more than using it. */
export function outputCheck(schema: Readonly<Record<string, unknown>>): (text: string) => OutputCheck {
  const check = checkOf(schema)
  return text => {
    if (isDeeper(text, MOST_LEVELS)) {
      return { ok: false, problem: `the answer is nested too deep: at most ${MOST_LEVELS} levels are kept` }
    }
    let value: unknown
    try {
      value = readJson(withoutFence(text))
    } catch {
      return { ok: false, problem: 'the answer is not JSON' }
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return { ok: false, problem: 'the answer is not a JSON object' }
    }
    const inexact = inexactProblem(withoutFence(text), check)
    if (inexact !== undefined) return { ok: false, problem: inexact }
    const fault = check(value)
    if (!fault) return { ok: true, output: value as Record<string, unknown> }
    return { ok: false, problem: `${fault.at}: ${fault.message}` }
  }
}

function checkOf(schema: Readonly<Record<string, unknown>>) {
  try {
    return schemaCheck(schema)
  } catch (error) {
    if (!(error instanceof SchemaProblem)) throw error
    throw new RunFailure('output_invalid', `outputSchema cannot be used: ${error.message}`, { cause: error })
  }
}

/** Models like to wrap JSON in a fenced block. */
function withoutFence(text: string): string {
  const whole = text.trim()
  const [first, last] = [whole.indexOf('\n'), whole.lastIndexOf('\n')]
  const fenced = /^```(?:json)?\s*$/.test(whole.slice(0, first)) && whole.slice(last).trim() === '```'
  return first < last && fenced ? whole.slice(first, last) : text
}
