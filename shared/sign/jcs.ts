/** A value that JSON can carry. `undefined` members are left out, as JSON.stringify does. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

export class CanonicalError extends TypeError {
  readonly path: string
  constructor(path: string, problem: string) {
    super(`cannot canonicalise ${path === '' ? 'the value' : path}: ${problem}`)
    this.name = 'CanonicalError'
    this.path = path
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u

/**
 * RFC 8785 (JCS): no white space, keys sorted by UTF-16 code units (§3.2.3), numbers and strings as ECMAScript prints
 * them (§3.2.2). Throws CanonicalError for what I-JSON cannot hold: NaN, infinities, lone surrogates, bigint, functions.
 */
export function canonicalize(value: unknown): string {
  return write(value, '')
}

function write(value: unknown, path: string): string {
  switch (typeof value) {
    case 'string':
      return text(value, path)
    case 'number':
      if (!Number.isFinite(value)) throw new CanonicalError(path, `${value} is not a JSON number`)
      return Object.is(value, -0) ? '0' : String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? list(value, path) : members(value as Record<string, unknown>, path)
    default:
      throw new CanonicalError(path, `a ${typeof value} has no JSON form`)
  }
}

function text(value: string, path: string): string {
  if (LONE_SURROGATE.test(value)) throw new CanonicalError(path, 'the text holds half of a surrogate pair')
  return JSON.stringify(value)
}

function list(values: readonly unknown[], path: string): string {
  let out = '['
  for (let i = 0; i < values.length; i++) {
    if (i > 0) out += ','
    out += write(values[i], path + '/' + i)
  }
  return out + ']'
}

function members(value: Record<string, unknown>, path: string): string {
  if (typeof value.toJSON === 'function') throw new CanonicalError(path, 'convert objects with toJSON first')
  let out = '{'
  for (const key of Object.keys(value).sort()) {
    const member = value[key]
    if (member === undefined) continue
    if (out.length > 1) out += ','
    out += text(key, path) + ':' + write(member, path + '/' + key)
  }
  return out + '}'
}
