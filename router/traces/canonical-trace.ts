import { toHex } from '../../shared/sign/bytes.ts'
import { GENESIS, type Sealed } from '../../shared/sign/record-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

/** The longest string of a sealed record (router contract §1.2). */
const MAX_TEXT = 512

/** Printable ASCII without the quote and the backslash: such text stands in JSON as it is. */
const PLAIN = /^[ !#-[\]-~]*$/

/**
 * Text as a sealed record may hold it: no lone surrogate, no NUL (a text column would be cut there), at most 512 UTF-16 units.
 */
export function sealableText(text: string): string {
  if (text.length <= MAX_TEXT && PLAIN.test(text)) return text
  // Cut before repairing, so that a pair cut in half is repaired too.
  return text.slice(0, MAX_TEXT).toWellFormed().replaceAll('\0', '\ufffd')
}

/** The canonical record in four pieces, around the three members that the writer adds: `hash`, `prev_hash`, `seq`. */
export interface TraceText {
  readonly beforeHash: string
  readonly beforePrevHash: string
  readonly beforeSeq: string
  readonly rest: string
}

/**
 * The canonical form (RFC 8785) of a record that has no place yet, so that sealing only joins strings. Text is made sealable on the
 * way. Throws for a number that JSON cannot hold.
 */
export function traceText(record: UnsealedTrace): TraceText {
  const pieces: [string, string, string, string] = ['', '', '', '']
  const members = record as unknown as Record<string, unknown>
  for (const key of sortedKeys(members)) {
    const value = members[key]
    if (value === undefined || key === 'hash' || key === 'prev_hash' || key === 'seq') continue
    const at = key < 'hash' ? 0 : key < 'prev_hash' ? 1 : key < 'seq' ? 2 : 3
    pieces[at] += (at === 0 && pieces[0] === '' ? '' : ',') + named(key) + written(value)
  }
  return { beforeHash: pieces[0], beforePrevHash: pieces[1], beforeSeq: pieces[2], rest: pieces[3] }
}

/** The last record of a chain. */
export type ChainHead = Pick<Sealed, 'seq' | 'hash'>

export interface SealedText extends Sealed {
  /** The whole record, canonical, with its hash. */
  body: string
}

const encoder = new TextEncoder()
// One buffer for all records: encodeInto is 10 times as fast as an encode that allocates (measured, 1.9 kB).
let scratch = new Uint8Array(16_384)

/** Gives a record its place after `previous`; the hash is that of `recordHash`. */
export function sealText(text: TraceText, previous: ChainHead | undefined, sha256: Sha256): SealedText {
  const seq = previous === undefined ? 0 : previous.seq + 1
  const prev_hash = previous === undefined ? GENESIS : previous.hash
  const head = '{' + text.beforeHash
  const tail = `${text.beforePrevHash},"prev_hash":"${prev_hash}"${text.beforeSeq},"seq":${seq}${text.rest}}`
  const hash = hashText(head + tail, sha256)
  return { seq, prev_hash, hash, body: `${head},"hash":"${hash}"${tail}` }
}

/** Lower-hex SHA-256 of the UTF-8 bytes of a text. */
export function hashText(text: string, sha256: Sha256): string {
  // A UTF-16 unit is at most three bytes of UTF-8.
  if (text.length * 3 > scratch.length) scratch = new Uint8Array(text.length * 4)
  return toHex(sha256(scratch.subarray(0, encoder.encodeInto(text, scratch).written)))
}

function written(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`A trace cannot hold the number ${value}.`)
      // String() gives '0' for -0, as RFC 8785 asks.
      return String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? list(value) : object(value as Record<string, unknown>)
    default:
      throw new TypeError(`A trace cannot hold a ${typeof value}.`)
  }
}

function list(values: readonly unknown[]): string {
  let out = ''
  for (const value of values) out += (out === '' ? '' : ',') + written(value)
  return '[' + out + ']'
}

function object(members: Record<string, unknown>): string {
  let out = ''
  for (const key of sortedKeys(members)) {
    const value = members[key]
    if (value !== undefined) out += (out === '' ? '' : ',') + named(key) + written(value)
  }
  return '{' + out + '}'
}

function quoted(text: string): string {
  return text.length <= MAX_TEXT && PLAIN.test(text) ? '"' + text + '"' : JSON.stringify(sealableText(text))
}

/** Names are the program's own, and sorted as they are. */
function named(key: string): string {
  if (!PLAIN.test(key)) throw new TypeError('A trace cannot hold a member whose name is not plain text.')
  return '"' + key + '":'
}

/**
 * Key orders seen before, by an object's first key. Records have a handful of shapes, and sorting the keys of each object anew was half
 * the cost of a canonical form (measured).
 */
const orders = new Map<string, (readonly string[])[]>()
const MAX_SHAPES = 16

function sortedKeys(members: Record<string, unknown>): readonly string[] {
  const keys = Object.keys(members)
  const first = keys[0]
  if (first === undefined) return keys
  const known = orders.get(first) ?? []
  for (const order of known) {
    // As many keys as the object has, all of them the object's own: the same keys.
    if (order.length === keys.length && holds(members, order)) return order
  }
  keys.sort()
  if (known.length < MAX_SHAPES && (known.length > 0 || orders.size < 10 * MAX_SHAPES))
    orders.set(first, [...known, keys])
  return keys
}

function holds(members: Record<string, unknown>, keys: readonly string[]): boolean {
  for (const key of keys) if (!Object.hasOwn(members, key)) return false
  return true
}
