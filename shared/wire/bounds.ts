import { z } from 'zod'

type Complaint = (issue: { readonly input?: unknown; readonly code?: string }) => string | undefined

/** One sentence per schema: what was expected, or that the value is missing. */
export const expected =
  (what: string): Complaint =>
  issue =>
    // A key that is too many is named by itself.
    issue.code === 'unrecognized_keys' ? undefined : issue.input === undefined ? 'Required' : `expected ${what}`

export const int = (min: number, max: number = Number.MAX_SAFE_INTEGER) => {
  const error = expected(
    max === Number.MAX_SAFE_INTEGER ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`,
  )
  return z.int({ error }).min(min).max(max)
}

export const num = (min: number, max: number) =>
  z
    .number({ error: expected(`a number from ${min} to ${max}`) })
    .min(min)
    .max(max)

export const text = (min: number, max: number) => {
  const what = min === 0 ? `a string of up to ${max} characters` : `a string of ${min} to ${max} characters`
  return z
    .string({ error: expected(what) })
    .min(min)
    .max(max)
}

/** A string of one shape; `what` completes the sentence "expected …". */
export const shape = (pattern: RegExp, what: string) => z.string({ error: expected(what) }).regex(pattern)

/** A text that a store keeps as it was given: half of a surrogate pair has no UTF-8 form, and a column of text ends at a NUL. */
const isStorable = (value: string) => value.isWellFormed() && !value.includes('\0')
const STORABLE = { error: 'expected no NUL and no half of a surrogate pair' }

/** A short text that things are found by. */
export const plainText = (min: number, max: number) => text(min, max).refine(isStorable, STORABLE)

/** A name that people read. */
export const displayName = (max: number) =>
  shape(/\S/, `a string of 1 to ${max} characters that are not all spaces`).min(1).max(max).refine(isStorable, STORABLE)

const toTheMinute = z.iso.datetime({ offset: true, precision: -1 })
const existing = z.union([z.iso.date(), toTheMinute, z.iso.datetime({ offset: true })])
const DAY_OR_MOMENT = 'a day such as 2026-01-02 or a time with a zone'

/** A moment in a query. `Date.parse` alone would take 30 February for 2 March. */
export const dayOrMoment = z
  .string({ error: expected(DAY_OR_MOMENT) })
  .refine(value => existing.safeParse(value).success, { error: `expected ${DAY_OR_MOMENT}` })

/** The same of an option of a command; NaN where it is none. */
export const momentOf = (text: string) => (dayOrMoment.safeParse(text).success ? Date.parse(text) : Number.NaN)

/** A count in an answer: our own numbers need no upper bound. */
export const count = z.int().min(0)

/** Any JSON object. Values stay unknown: a recursive JSON schema would walk every body twice for nothing. */
export const freeForm = z.record(z.string(), z.unknown(), { error: expected('an object') })

/** The dotted path in an answer: `tools.0.name`. */
export const dotted = (path: readonly PropertyKey[]): string => path.map(String).join('.')
