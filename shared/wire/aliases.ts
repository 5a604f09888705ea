import { z } from 'zod'
import type { Detail } from './issues.ts'

export interface Alias {
  /** The other spelling, a key of the body itself. */
  readonly from: string
  /** The name in the contract, one key deep or two: `agentName`, `config.input`. */
  readonly to: string
  /** Reads the alias's own form; a returned string is the complaint. */
  readonly read?: (value: unknown) => { value: unknown } | string
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Equal as JSON. */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => same(item, b[at]))
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => Object.hasOwn(b, key) && same(a[key], b[key]))
}

/**
 * Moves aliases to the contract's names and leaves everything else alone. An alias that says something else than
 * the name it stands for is a complaint, never a choice; one that says the same is dropped.
 */
export function fromAliases(input: unknown, aliases: readonly Alias[]): { value: unknown; details: Detail[] } {
  if (!isObject(input)) return { value: input, details: [] }
  const found: Detail[] = []
  let out: Record<string, unknown> = input
  for (const { from, to, read } of aliases) {
    if (!Object.hasOwn(out, from)) continue
    const { [from]: given, ...rest } = out
    const taken = read ? read(given) : { value: given }
    if (typeof taken === 'string') {
      found.push({ path: from, message: taken })
      out = rest
      continue
    }
    const [head = to, leaf] = to.split('.')
    const parent = leaf === undefined ? rest : (rest[head] ?? {})
    if (!isObject(parent)) {
      // The schema will say what is wrong with the parent; the alias has nowhere to go.
      out = rest
      continue
    }
    const name = leaf ?? head
    if (parent[name] !== undefined && !same(parent[name], taken.value)) {
      found.push({ path: from, message: `differs from ${to}; send only ${to}` })
      out = rest
      continue
    }
    out =
      leaf === undefined ? { ...rest, [name]: taken.value } : { ...rest, [head]: { ...parent, [name]: taken.value } }
  }
  return { value: out, details: found }
}

/** A body schema that also reads the aliases; its type stays the one of the contract's names. */
export function withAliases<T extends z.ZodType>(schema: T, aliases: readonly Alias[]) {
  return z.preprocess((given: z.input<T>, ctx): unknown => {
    const { value, details } = fromAliases(given, aliases)
    for (const { path, message } of details) ctx.addIssue({ code: 'custom', path: [path], message, continue: true })
    return value
  }, schema)
}

/** The literal texts `undefined` and `null`, which some clients print for a missing value, count as absent. */
export function dropAbsent(query: unknown): unknown {
  if (!isObject(query)) return query
  const out: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== 'undefined' && value !== 'null') out[key] = value
  return out
}

const known = new WeakMap<z.ZodType, readonly string[]>()

/** The parameters that a query's schema reads, other spellings among them; `any` where it takes whatever comes. */
export function queryNames(schema: z.ZodType): readonly string[] | 'any' {
  const names = known.get(schema)
  if (names) return names
  return schema instanceof z.ZodObject && schema.def.catchall === undefined ? Object.keys(schema.shape) : 'any'
}

/** A query string's schema: absent literals dropped, aliases moved. */
export function query<S extends z.ZodRawShape>(fields: S, aliases: readonly Alias[] = []) {
  const schema = z.object(fields)
  const whole = z.preprocess((given: z.input<typeof schema>, ctx): unknown => {
    const { value, details } = fromAliases(dropAbsent(given), aliases)
    for (const { path, message } of details) ctx.addIssue({ code: 'custom', path: [path], message, continue: true })
    return value
  }, schema)
  known.set(whole, [...Object.keys(fields), ...aliases.map(({ from }) => from)])
  return whole
}

/** A number that arrives as text in a query. */
export const fromText = <T extends z.ZodType>(number: T) =>
  z.preprocess(
    (given: unknown): unknown => (typeof given === 'string' && /^-?\d{1,16}$/.test(given) ? Number(given) : given),
    number,
  )

/** `true` and `false` as text in a query. */
export const flag = z.preprocess(
  (given: unknown): unknown =>
    given === 'true' || given === '1' ? true : given === 'false' || given === '0' ? false : given,
  z.boolean({ error: 'expected true or false' }),
)
