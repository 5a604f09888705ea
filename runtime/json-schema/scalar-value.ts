import { format, ucs2length, validate } from '@cfworker/json-schema'
import type { Evaluation, Here } from './evaluation.ts'

/** The names of JSON Schema; whatever else the library has (its `url` takes for ever on some texts) is a note, as unknown names are. */
const FORMATS = new Set([
  ...['date', 'time', 'date-time', 'duration', 'uri', 'uri-reference', 'uri-template', 'email', 'hostname', 'ipv4'],
  ...['ipv6', 'regex', 'uuid', 'json-pointer', 'relative-json-pointer'],
])

export function checkNumber(_run: Evaluation, { schema, value, wrong }: Here<number>): void {
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

export function checkString(run: Evaluation, { schema, value, wrong }: Here<string>): void {
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
