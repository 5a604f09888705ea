import { format, ucs2length, validate } from '@cfworker/json-schema'
import type { AnySchema, Evaluation, Fault, Instance, Seen, Where } from './evaluation.ts'

/** The keywords that hold for values of every type. */
export function checkAny(run: Evaluation, here: Instance<unknown>): void {
  const { schema, value, wrong } = here
  if (Array.isArray(schema.type)) run.spend(schema.type.length)
  const types = schema.type as string | readonly string[] | undefined
  if (types !== undefined && !(Array.isArray(types) ? types : [types]).some(type => isOf(type as string, value))) {
    const expected = Array.isArray(types) ? types.join('", "') : String(types)
    wrong(() => `Instance type "${typeOf(value)}" is invalid. Expected "${expected}".`)
  }
  if ('const' in schema && !run.isIn([schema.const], value, schema)) {
    wrong(() => `Instance does not match ${JSON.stringify(schema.const)}.`)
  }
  const list = schema.enum as readonly unknown[] | undefined
  if (list && !run.isIn(list, value, list)) wrong(() => `Instance does not match any of ${JSON.stringify(list)}.`)
  checkSame(run, here)
}

/** The keywords that hold further schemas against the same value. */
function checkSame(run: Evaluation, { schema, value, at, seen, wrong }: Instance<unknown>): void {
  /** What a schema looked at counts only if the value fits it. */
  const held = (inner: AnySchema, counts: Seen = seen): Fault | undefined => {
    const own: Seen = new Set()
    const fault = run.check(inner, value, at, own)
    if (!fault) for (const one of own) counts.add(one)
    return fault
  }
  if (schema.not !== undefined && !held(schema.not as AnySchema, new Set())) {
    wrong(() => 'Instance matched "not" schema.')
  }
  const all = schema.allOf as readonly AnySchema[] | undefined
  const ofAll = all?.map(inner => held(inner)).filter(fault => fault !== undefined)
  if (ofAll && ofAll.length > 0) wrong(() => 'Instance does not match every subschema.', lastOf(ofAll))
  const any = schema.anyOf as readonly AnySchema[] | undefined
  const ofAny = any?.map(inner => held(inner))
  if (ofAny?.every(fault => fault !== undefined)) wrong(() => 'Instance does not match any subschemas.', lastOf(ofAny))
  const one = schema.oneOf as readonly AnySchema[] | undefined
  if (one) {
    const faults = one.map(inner => held(inner)).filter(fault => fault !== undefined)
    const matches = one.length - faults.length
    if (matches !== 1) {
      wrong(() => `Instance does not match exactly one subschema (${matches} matches).`, lastOf(faults))
    }
  }
  if (schema.if === undefined) return
  const branch = held(schema.if as AnySchema) ? 'else' : 'then'
  const fault = schema[branch] === undefined ? undefined : held(schema[branch] as AnySchema)
  if (fault) wrong(() => `Instance does not match "${branch}" schema.`, fault)
}

const lastOf = (faults: readonly (Fault | undefined)[]) => faults.findLast(fault => fault && !fault.bare)

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

const isOf = (type: string, value: unknown) => (type === 'integer' ? Number.isInteger(value) : type === typeOf(value))

/** The keywords of arrays. */
export function checkArray(run: Evaluation, here: Instance<readonly unknown[]>): void {
  const { schema, value, wrong } = here
  const { length } = value
  const least = schema.minItems as number | undefined
  const most = schema.maxItems as number | undefined
  run.spend(length)
  if (most !== undefined && length > most) wrong(() => `Array has too many items (${length} > ${most}).`)
  if (least !== undefined && length < least) wrong(() => `Array has too few items (${length} < ${least}).`)
  checkItems(run, here)
  checkContained(run, here)
  checkUnseen(run, here)
  if (schema.uniqueItems === true) checkUnique(run, here)
}

function checkItems(run: Evaluation, { schema, value, at, seen, wrong }: Instance<readonly unknown[]>): void {
  // A list in `items` is what `prefixItems` was called before.
  const lists = [schema.prefixItems, schema.items].filter(one => Array.isArray(one)) as (readonly AnySchema[])[]
  const [rest, keyword] = Array.isArray(schema.items)
    ? [schema.additionalItems, 'additional items']
    : [schema.items, 'items']
  const first = lists[0] ?? []
  for (const [n, item] of value.entries()) {
    const inner = n < first.length ? first[n] : (rest as AnySchema | undefined)
    if (inner === undefined) break
    seen.add(n)
    const fault = run.check(inner, item, { name: n, within: at })
    if (fault)
      wrong(
        () => (keyword === 'items' ? 'Items did not match schema.' : `Items did not match ${keyword} schema.`),
        fault,
      )
  }
}

function checkContained(run: Evaluation, { schema, value, at, seen, wrong }: Instance<readonly unknown[]>): void {
  if (schema.contains === undefined) return
  const least = (schema.minContains as number | undefined) ?? 1
  const most = (schema.maxContains as number | undefined) ?? Infinity
  let contained = 0
  for (const [n, item] of value.entries()) {
    if (run.check(schema.contains as AnySchema, item, { name: n, within: at })) continue
    contained++
    seen.add(n)
  }
  if (contained < least) {
    wrong(() => `Array has too few items that match the "contains" schema (${contained} < ${least}).`)
  }
  if (contained > most) {
    wrong(() => `Array has too many items that match the "contains" schema (${contained} > ${most}).`)
  }
}

function checkUnseen(run: Evaluation, { schema, value, at, seen, wrong }: Instance<readonly unknown[]>): void {
  if (schema.unevaluatedItems === undefined) return
  for (const [n, item] of value.entries()) {
    if (seen.has(n)) continue
    seen.add(n)
    const fault = run.check(schema.unevaluatedItems as AnySchema, item, { name: n, within: at })
    if (fault) wrong(() => 'Items did not match unevaluated items schema.', fault)
  }
}

function checkUnique(run: Evaluation, { value, wrong }: Instance<readonly unknown[]>): void {
  const first = new Map<string, number>()
  for (const [n, item] of value.entries()) {
    const key = run.keyOf(item)
    const before = first.get(key)
    if (before !== undefined) {
      wrong(() => `Duplicate items at indexes ${before} and ${n}.`)
      return
    }
    first.set(key, n)
  }
}

/** The names of JSON Schema; whatever else the library has (its `url` takes for ever on some texts) is a note, as unknown names are. */
const FORMATS = new Set([
  ...['date', 'time', 'date-time', 'duration', 'uri', 'uri-reference', 'uri-template', 'email', 'hostname', 'ipv4'],
  ...['ipv6', 'regex', 'uuid', 'json-pointer', 'relative-json-pointer'],
])

export function checkNumber(_run: Evaluation, { schema, value, wrong }: Instance<number>): void {
  const bound = (keyword: string, holds: (limit: number) => boolean, words: string) => {
    const limit = schema[keyword]
    if (typeof limit === 'number' && !holds(limit)) wrong(() => `${value} is ${words} ${limit}.`)
  }
  bound('minimum', limit => value >= limit, 'less than')
  bound('maximum', limit => value <= limit, 'greater than')
  bound(
    schema.exclusiveMinimum === true ? 'minimum' : 'exclusiveMinimum',
    limit => value > limit,
    'less than or equal to',
  )
  bound(
    schema.exclusiveMaximum === true ? 'maximum' : 'exclusiveMaximum',
    limit => value < limit,
    'greater than or equal to',
  )
  const multipleOf = schema.multipleOf as number | undefined
  // Exact for decimals, which takes more than a division.
  if (multipleOf !== undefined && !validate(value, { multipleOf }).valid) {
    wrong(() => `${value} is not a multiple of ${multipleOf}.`)
  }
}

export function checkString(run: Evaluation, { schema, value, wrong }: Instance<string>): void {
  const least = schema.minLength as number | undefined
  const most = schema.maxLength as number | undefined
  if (least !== undefined || most !== undefined) {
    run.spend(value.length / 100)
    const length = ucs2length(value)
    if (least !== undefined && length < least) wrong(() => `String is too short (${length} < ${least}).`)
    if (most !== undefined && length > most) wrong(() => `String is too long (${length} > ${most}).`)
  }
  const { pattern, format: name } = schema as { pattern?: string; format?: string }
  if (pattern !== undefined && !run.matches(pattern, value)) wrong(() => 'String does not match pattern.')
  if (name === undefined || !FORMATS.has(name)) return
  run.spend(value.length)
  if (!format[name]!(value)) wrong(() => `String does not match format "${name}".`)
}

type Members = Readonly<Record<string, unknown>>
type Named<T> = Readonly<Record<string, T>>

/** The keywords of objects. */
export function checkObject(run: Evaluation, here: Instance<Members>): void {
  const { schema, value, at, wrong } = here
  const names = Object.keys(value)
  const least = schema.minProperties as number | undefined
  const most = schema.maxProperties as number | undefined
  run.spend(names.length)
  requires(run, here, schema.required, name => `Instance does not have required property "${name}".`)
  if (least !== undefined && names.length < least) wrong(() => `Instance does not have at least ${least} properties.`)
  if (most !== undefined && names.length > most) wrong(() => `Instance has more than ${most} properties.`)
  if (schema.propertyNames !== undefined) {
    for (const name of names) {
      const fault = run.check(schema.propertyNames as AnySchema, name, { name, within: at })
      if (fault) wrong(() => `Property name "${name}" does not match schema.`, fault)
    }
  }
  checkDependents(run, here)
  checkMembers(run, here, names)
}

function requires(
  run: Evaluation,
  { value, wrong }: Instance<Members>,
  names: unknown,
  say: (name: string) => string,
): void {
  if (!Array.isArray(names)) return
  run.spend(names.length)
  for (const name of names as string[]) if (!Object.hasOwn(value, name)) wrong(() => say(name))
}

function checkDependents(run: Evaluation, here: Instance<Members>): void {
  const { schema, value, at, seen, wrong } = here
  for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies']) {
    const held = schema[keyword] as Named<AnySchema | string[]> | undefined
    for (const [name, wanted] of Object.entries(held ?? {})) {
      run.spend(1)
      if (!Object.hasOwn(value, name)) continue
      if (Array.isArray(wanted)) {
        requires(run, here, wanted, other => `Instance has "${name}" but does not have "${other}".`)
        continue
      }
      const own: Seen = new Set()
      const fault = run.check(wanted, value, at, own)
      if (fault) wrong(() => `Instance has "${name}" but does not match dependant schema.`, fault)
      else for (const one of own) seen.add(one)
    }
  }
}

function checkMembers(
  run: Evaluation,
  { schema, value, at, seen, wrong }: Instance<Members>,
  names: readonly string[],
): void {
  const covered = new Set<string>()
  const hold = (name: string, inner: AnySchema, say: () => string): void => {
    covered.add(name)
    seen.add(name)
    const place: Where = { name, within: at }
    const fault = run.check(inner, value[name], place)
    if (fault) wrong(say, fault)
  }
  for (const [name, inner] of Object.entries((schema.properties ?? {}) as Named<AnySchema>)) {
    run.spend(1)
    if (Object.hasOwn(value, name)) hold(name, inner, () => `Property "${name}" does not match schema.`)
  }
  for (const [pattern, inner] of Object.entries((schema.patternProperties ?? {}) as Named<AnySchema>)) {
    for (const name of names) {
      if (!run.matches(pattern, name)) continue
      hold(name, inner, () => `Property "${name}" matches pattern "${pattern}" but does not match associated schema.`)
    }
  }
  const rest = schema.additionalProperties as AnySchema | undefined
  if (rest !== undefined) {
    for (const name of names.filter(name => !covered.has(name))) {
      hold(name, rest, () => `Property "${name}" does not match additional properties schema.`)
    }
  }
  const unseen = schema.unevaluatedProperties as AnySchema | undefined
  if (unseen === undefined) return
  for (const name of names.filter(name => !seen.has(name))) {
    hold(name, unseen, () => `Property "${name}" does not match unevaluated properties schema.`)
  }
}
