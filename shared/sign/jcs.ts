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

/**
 * RFC 8785 (JCS): no white space, keys sorted by UTF-16 code units (§3.2.3), numbers and strings as ECMAScript prints
 * them (§3.2.2). Throws CanonicalError for what I-JSON cannot hold: NaN, infinities, lone surrogates, bigint, functions.
 */
export function canonicalize(value: unknown): string {
  const text = inOrder(value) ? JSON.stringify(value) : write(value)
  if (text !== undefined) return text
  throw problemIn(value, '') ?? new CanonicalError('', 'it changes while it is read')
}

/**
 * Whether the engine's own JSON text is the canonical one: members stand in order, and nothing is there that it would leave out, replace
 * or ask for its form. What is made often is made in order, and then takes half the time, without a string for each part of it.
 */
function inOrder(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed()
    case 'number':
      return Number.isFinite(value)
    case 'boolean':
      return true
    case 'object':
      if (value === null) return true
      if ('toJSON' in value) return false
      return Array.isArray(value) ? allInOrder(value) : membersInOrder(value)
    default:
      return false
  }
}

function allInOrder(values: readonly unknown[]): boolean {
  // Not `every`, which passes over what is missing.
  for (let at = 0; at < values.length; at++) if (!inOrder(values[at])) return false
  return true
}

function membersInOrder(value: object): boolean {
  const shape = Object.getPrototypeOf(value)
  // Boxed values and the like have a form of their own in JSON.
  if (shape !== Object.prototype && shape !== null) return false
  let before: string | undefined
  for (const key in value) {
    if (before !== undefined && before > key) return false
    const member = (value as Record<string, unknown>)[key]
    if (member !== undefined && !(key.isWellFormed() && inOrder(member))) return false
    before = key
  }
  return true
}

/** Undefined where there is no form; only then is it worth knowing where, since carrying the path along takes a third of the time. */
function write(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? JSON.stringify(value) : undefined
    case 'number':
      return Number.isFinite(value) ? (Object.is(value, -0) ? '0' : String(value)) : undefined
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? list(value) : members(value as Record<string, unknown>)
    default:
      return undefined
  }
}

function list(values: readonly unknown[]): string | undefined {
  let out = '['
  for (let i = 0; i < values.length; i++) {
    const item = write(values[i])
    if (item === undefined) return undefined
    if (i > 0) out += ','
    out += item
  }
  return out + ']'
}

function members(value: Record<string, unknown>): string | undefined {
  if (typeof value.toJSON === 'function') return undefined
  let out = '{'
  for (const key of sortedKeys(value)) {
    const member = value[key]
    if (member === undefined) continue
    const name = write(key)
    const text = write(member)
    if (name === undefined || text === undefined) return undefined
    if (out.length > 1) out += ','
    out += name + ':' + text
  }
  return out + '}'
}

/** Most objects have few members, or had them in order: `sort` would make three more arrays for each of them. */
function sortedKeys(value: Record<string, unknown>): string[] {
  const keys = Object.keys(value)
  for (let at = 1; at < keys.length; at++) {
    const key = keys[at]!
    if (keys[at - 1]! <= key) continue
    if (keys.length > 24) return keys.sort()
    let to = at
    for (; to > 0 && keys[to - 1]! > key; to--) keys[to] = keys[to - 1]!
    keys[to] = key
  }
  return keys
}

/** The first thing in a value that has no form, and where it stands. */
function problemIn(value: unknown, path: string): CanonicalError | undefined {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? undefined : new CanonicalError(path, 'the text holds half of a surrogate pair')
    case 'number':
      return Number.isFinite(value) ? undefined : new CanonicalError(path, `${value} is not a JSON number`)
    case 'boolean':
      return undefined
    case 'object': {
      if (value === null) return undefined
      if (!Array.isArray(value) && typeof (value as { toJSON?: unknown }).toJSON === 'function') {
        return new CanonicalError(path, 'convert objects with toJSON first')
      }
      for (const key of Array.isArray(value) ? value.keys() : Object.keys(value).sort()) {
        const member = (value as Record<string | number, unknown>)[key]
        if (member === undefined && !Array.isArray(value)) continue
        const problem = problemIn(typeof key === 'string' ? key : 0, path) ?? problemIn(member, `${path}/${key}`)
        if (problem) return problem
      }
      return undefined
    }
    default:
      return new CanonicalError(path, `a ${typeof value} has no JSON form`)
  }
}
