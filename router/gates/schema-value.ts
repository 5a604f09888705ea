import type { OutputUnit, Validator } from '@cfworker/json-schema'
import type { RegexAnswer } from './regex-runner.ts'

/** Checks a parsed value. The reason names the place in the schema: the place in the value would show parts of it. */
export function checkValue(validator: Validator, value: unknown): RegexAnswer {
  try {
    const { valid, errors } = validator.validate(value)
    return valid ? { verdict: 'pass' } : { verdict: 'fail', reason: `schema: ${placeOf(errors)}` }
  } catch (error) {
    // A schema that refers to itself without going deeper, or a value nested too deep for the stack.
    if (error instanceof RangeError) return { verdict: 'error', reason: 'too_deep' }
    throw error
  }
}

/** The innermost complaint; that of a `false` schema gives the place in the value as its own, so its parent speaks. */
function placeOf(errors: readonly OutputUnit[]): string {
  const inner = errors.findLast(({ keyword }) => keyword !== 'false')
  return inner === undefined ? 'false' : `${inner.keyword} at ${inner.keywordLocation}`
}
