import { z } from 'zod'
import { dotted } from './bounds.ts'
import { nearest } from './nearest.ts'

/** One line of an error answer's `details`. */
export interface Detail {
  path: string
  message: string
}

export type Checked<T> = { ok: true; value: T } | { ok: false; details: Detail[] }

const words: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
}

const list = (values: readonly unknown[]): string => values.map(value => `'${String(value)}'`).join(', ')

/** Short sentences in place of zod's own, used as the error map of each parse; a schema's own message wins. */
export function wireMessage(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined && issue.code !== 'custom') return 'Required'
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${words[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return issue.values.length === 1 ? `expected ${list(issue.values)}` : `expected one of ${list(issue.values)}`
    case 'too_small':
      return issue.origin === 'array'
        ? `expected at least ${issue.minimum} items`
        : `expected at least ${issue.minimum}${issue.origin === 'string' ? ' characters' : ''}`
    case 'too_big':
      return issue.origin === 'array'
        ? `expected at most ${issue.maximum} items`
        : `expected at most ${issue.maximum}${issue.origin === 'string' ? ' characters' : ''}`
    case 'invalid_key':
      return `this key is not allowed${issue.issues[0] === undefined ? '' : `: ${issue.issues[0].message}`}`
    default:
      return undefined
  }
}

const UNKNOWN = 'unknown key'

/** A person mistypes a few keys; what is looked for in vain for each of thousands holds others up. */
const MOST_SUGGESTED = 20

/** As `wireMessage`, for one parse, and with the key that was meant by a mistyped one: a line for each key, as long as there are few. */
function suggesting(): typeof wireMessage {
  let left = MOST_SUGGESTED
  return issue => {
    if (issue.code !== 'unrecognized_keys') return wireMessage(issue)
    const few = issue.keys.slice(0, left)
    left -= few.length
    return few.map(key => unknownKey(key, issue.inst)).join('\n') || UNKNOWN
  }
}

function unknownKey(key: string, schema: unknown): string {
  const near = schema instanceof z.ZodObject ? nearest(key, Object.keys(schema.shape)) : undefined
  return near === undefined ? UNKNOWN : `${UNKNOWN}; did you mean ${near}?`
}

// In a union the branch that came closest explains best: the one with the fewest complaints, deepest first.
function closest(branches: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] {
  const weight = (branch: readonly z.core.$ZodIssue[]) =>
    branch.reduce(
      (sum, issue) =>
        sum +
        (issue.code === 'unrecognized_keys' ? issue.keys.length : 1) +
        (issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value') ? 1000 : 0),
      0,
    )
  let best: readonly z.core.$ZodIssue[] = []
  let least = Number.POSITIVE_INFINITY
  for (const branch of branches) {
    const mine = weight(branch)
    if (branch.length > 0 && mine < least) {
      best = branch
      least = mine
    }
  }
  return best
}

function lines(issue: z.core.$ZodIssue, at: readonly PropertyKey[]): Detail[] {
  const path = [...at, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    // As `suggesting` wrote them.
    const messages = issue.message.split('\n')
    return issue.keys.map((key, at) => ({ path: dotted([...path, key]), message: messages[at] ?? UNKNOWN }))
  }
  if (issue.code === 'invalid_union') {
    const branch = closest(issue.errors)
    if (branch.length > 0) return branch.flatMap(inner => lines(inner, path))
  }
  return [{ path: dotted(path), message: issue.message }]
}

/** What a person reads of them; all could be ten times as long as what was sent. */
const MOST_DETAILS = 100

/** The flat `details` of a validation error: one entry per complaint, each unknown key named. */
export const details = (error: z.core.$ZodError): Detail[] =>
  error.issues.flatMap(issue => lines(issue, [])).slice(0, MOST_DETAILS)

/** The one way in for anything that crosses a process boundary. */
export function check<T extends z.ZodType>(schema: T, value: unknown): Checked<z.output<T>> {
  const result = schema.safeParse(value, { error: suggesting() })
  return result.success ? { ok: true, value: result.data } : { ok: false, details: details(result.error) }
}

/** The `error` string of a validation error: the first complaint as a sentence that names the field; a mistyped key may be why another is missing. */
export function sentence(found: readonly Detail[]): string {
  const first = found.find(({ message }) => message.startsWith(`${UNKNOWN};`)) ?? found[0]
  if (first === undefined) return 'the request is not valid'
  if (first.path === '') return first.message === 'Required' ? 'a body is required' : `body: ${first.message}`
  if (first.message === 'Required') return `${first.path} is required`
  if (first.message.startsWith(UNKNOWN)) return `${UNKNOWN}: ${first.path}${first.message.slice(UNKNOWN.length)}`
  return `${first.path}: ${first.message}`
}
