import { type Schema, Validator } from '@cfworker/json-schema'

export type OutputCheck = { ok: true; output: Record<string, unknown> } | { ok: false; problem: string }

/** Reads a final text against the manifest's schema. Made once per run: compiling a schema costs more than using it. */
export function outputCheck(schema: Readonly<Record<string, unknown>>): (text: string) => OutputCheck {
  const validator = new Validator(structuredClone(schema) as Schema, '2020-12', false)
  return text => {
    let value: unknown
    try {
      value = JSON.parse(withoutFence(text))
    } catch {
      return { ok: false, problem: 'the answer is not JSON' }
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return { ok: false, problem: 'the answer is not a JSON object' }
    }
    const { valid, errors } = validator.validate(value)
    if (valid) return { ok: true, output: value as Record<string, unknown> }
    const inner = errors.findLast(({ keyword }) => keyword !== 'false')
    return {
      ok: false,
      problem: inner ? `${inner.instanceLocation}: ${inner.error}` : 'the answer does not fit the schema',
    }
  }
}

/** Models like to wrap JSON in a fenced block. */
function withoutFence(text: string): string {
  return /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text
}
