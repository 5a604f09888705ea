import type { Cursor, Span } from './json-scan.ts'
import { cursor, JsonSyntaxError, skipColon, skipSpace, skipString, skipValue, spanText } from './json-scan.ts'

/** Keys a reader cares about, with their UTF-8 bytes, so that a plain key is compared without making a string. */
export interface KeyTable<N extends string> {
  readonly names: readonly N[]
  readonly spellings: readonly Uint8Array[]
}

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

export function keyTable<const N extends string>(names: readonly N[]): KeyTable<N> {
  return { names, spellings: names.map(name => new TextEncoder().encode(name)) }
}

function matches(bytes: Uint8Array, start: number, spelling: Uint8Array): boolean {
  for (let i = 0; i < spelling.length; i += 1) if (bytes[start + i] !== spelling[i]) return false
  return true
}

/** Finds the literal between the quotes at `start` and `end` in the table; escapes are undone before comparing. */
function findName<N extends string>(c: Cursor, literal: Span, escaped: boolean, table: KeyTable<N>): N | undefined {
  if (escaped) {
    const text: unknown = JSON.parse(spanText(c.bytes, literal))
    return table.names.find(name => name === text)
  }
  const length = literal.end - literal.start - 2
  for (let i = 0; i < table.names.length; i += 1) {
    const spelling = table.spellings[i]!
    if (spelling.length === length && matches(c.bytes, literal.start + 1, spelling)) return table.names[i]
  }
  return undefined
}

/** Reads a value and, when it is a string of the table, says which; anything else is stepped over. */
export function readName<N extends string>(c: Cursor, table: KeyTable<N>): N | undefined {
  if (c.bytes[c.at] !== QUOTE) {
    skipValue(c)
    return undefined
  }
  const start = c.at
  const escaped = skipString(c)
  return findName(c, { start, end: c.at }, escaped, table)
}

/**
 * Walks the members of the object at the cursor. `visit` gets the key if the table has it, and where the member starts, and
 * finds the cursor on the first byte of the value; it may read the value, and what it leaves unread is stepped over.
 */
export function eachMember<N extends string>(
  c: Cursor,
  table: KeyTable<N>,
  visit: (key: N | undefined, start: number) => void,
): void {
  const { bytes } = c
  if (bytes[c.at] !== OPEN_BRACE) throw new JsonSyntaxError('an object', c.at)
  c.at += 1
  skipSpace(c)
  if (bytes[c.at] === CLOSE_BRACE) {
    c.at += 1
    return
  }
  for (;;) {
    skipSpace(c)
    const start = c.at
    const escaped = skipString(c)
    const key = findName(c, { start, end: c.at }, escaped, table)
    skipColon(c)
    const value = c.at
    visit(key, start)
    if (c.at === value) skipValue(c)
    skipSpace(c)
    if (bytes[c.at] === CLOSE_BRACE) break
    if (bytes[c.at] !== COMMA) throw new JsonSyntaxError('a comma or }', c.at)
    c.at += 1
  }
  c.at += 1
}

/** Walks the items of the array at the cursor, in the manner of `eachMember`; returns how many there were. */
export function eachItem(c: Cursor, visit: (index: number) => void): number {
  const { bytes } = c
  if (bytes[c.at] !== OPEN_BRACKET) throw new JsonSyntaxError('an array', c.at)
  c.at += 1
  skipSpace(c)
  if (bytes[c.at] === CLOSE_BRACKET) {
    c.at += 1
    return 0
  }
  for (let index = 0; ; index += 1) {
    skipSpace(c)
    const value = c.at
    visit(index)
    if (c.at === value) skipValue(c)
    skipSpace(c)
    const b = bytes[c.at]
    if (b === CLOSE_BRACKET) {
      c.at += 1
      return index + 1
    }
    if (b !== COMMA) throw new JsonSyntaxError('a comma or ]', c.at)
    c.at += 1
  }
}

export const atObject = (c: Cursor): boolean => c.bytes[c.at] === OPEN_BRACE
export const atArray = (c: Cursor): boolean => c.bytes[c.at] === OPEN_BRACKET
export const atString = (c: Cursor): boolean => c.bytes[c.at] === QUOTE

/** Steps over a value and returns where it stood. */
export function readSpan(c: Cursor): Span {
  const start = c.at
  skipValue(c)
  return { start, end: c.at }
}

/** Reads a value that is expected to be a number; undefined for any other kind. */
export function readNumber(c: Cursor): number | undefined {
  const value: unknown = isScalarStart(c.bytes[c.at]) ? JSON.parse(spanText(c.bytes, readSpan(c))) : undefined
  return typeof value === 'number' ? value : undefined
}

/** The limit that a host may read: one that takes the number in a text is held by none, as if it were below zero. */
export const readLimit = (c: Cursor): number | undefined => (atString(c) ? -1 : readNumber(c))

const isScalarStart = (b: number | undefined): boolean => b === 0x2d || (b !== undefined && b >= 0x30 && b <= 0x39)

/** Reads a value that is expected to be a string; undefined for any other kind. */
export function readString(c: Cursor): string | undefined {
  if (!atString(c)) return undefined
  const value: unknown = JSON.parse(spanText(c.bytes, readSpan(c)))
  return typeof value === 'string' ? value : undefined
}

/** The value is the literal `true`. */
export function readTrue(c: Cursor): boolean {
  const yes = c.bytes[c.at] === 0x74
  skipValue(c)
  return yes
}

/** Runs `walk` on the one object the body must be, and checks that nothing follows it. */
export function wholeObject(bytes: Uint8Array, walk: (c: Cursor) => void): void {
  const c = cursor(bytes)
  skipSpace(c)
  walk(c)
  skipSpace(c)
  if (c.at !== bytes.length) throw new JsonSyntaxError('nothing more', c.at)
}
