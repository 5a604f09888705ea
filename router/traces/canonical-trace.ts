import { GENESIS, type Sealed } from '../../shared/sign/record-chain.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

/** The longest string of a sealed record (docs/spec/router.md §1.2). */
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
  const members = record as unknown as Record<string, unknown>
  const shape = shapeOf(members)
  const texts = textsOf(members, shape)
  const pieces: [string, string, string, string] = ['', '', '', '']
  for (const { key, from, label, next } of shape.sorted) {
    const text = texts[from]
    if (text === undefined || key === 'hash' || key === 'prev_hash' || key === 'seq') continue
    const at = key < 'hash' ? 0 : key < 'prev_hash' ? 1 : key < 'seq' ? 2 : 3
    pieces[at] += (at === 0 && pieces[0] === '' ? label : next) + text
  }
  return { beforeHash: pieces[0], beforePrevHash: pieces[1], beforeSeq: pieces[2], rest: pieces[3] }
}

/** The last record of a chain. */
export type ChainHead = Pick<Sealed, 'seq' | 'hash'>

const encoder = new TextEncoder()
// One buffer for all: encodeInto is 10 times as fast as an encode that allocates (measured, 1.9 kB).
let scratch = new Uint8Array(1 << 20)

/** Room for a text of so many UTF-16 units behind what is in use; a unit is at most three bytes of UTF-8. */
function roomFor(units: number, used: number): Uint8Array<ArrayBuffer> {
  if (used + units * 3 > scratch.length) {
    const wider = new Uint8Array((used + units * 3) * 2)
    wider.set(scratch.subarray(0, used))
    scratch = wider
  }
  return scratch
}

/** Lower-hex SHA-256 of the UTF-8 bytes of a text. */
export function hashText(text: string, sha256: Sha256): string {
  const buffer = roomFor(text.length, 0)
  return sha256Hex(buffer.subarray(0, encoder.encodeInto(text, buffer).written), sha256)
}

/**
 * A run of sealed records as bytes, one behind the other, for one statement. Each record becomes bytes once: they are hashed where they
 * stand, and then make room for the hash. Only one run can be open at a time.
 */
export function sealedRun(sha256: Sha256) {
  let used = 0
  return {
    /** Gives a record its place after `previous`; the hash is that of `recordHash`. Throws before anything of it is kept. */
    add(text: TraceText, previous: ChainHead | undefined): ChainHead & { at: number; bytes: number } {
      const seq = previous === undefined ? 0 : previous.seq + 1
      const prev_hash = previous === undefined ? GENESIS : previous.hash
      const tail = `${text.beforePrevHash},"prev_hash":"${prev_hash}"${text.beforeSeq},"seq":${seq}${text.rest}}`
      const buffer = roomFor(1 + text.beforeHash.length + HASH_MEMBER + tail.length, used)
      const head = encoder.encodeInto('{' + text.beforeHash, buffer.subarray(used)).written
      const rest = encoder.encodeInto(tail, buffer.subarray(used + head)).written
      const hash = sha256Hex(buffer.subarray(used, used + head + rest), sha256)
      buffer.copyWithin(used + head + HASH_MEMBER, used + head, used + head + rest)
      encoder.encodeInto(`,"hash":"${hash}"`, buffer.subarray(used + head))
      const at = used
      const bytes = head + HASH_MEMBER + rest
      used += bytes
      return { seq, hash, at, bytes }
    },
    /** A copy, because the buffer is used again. */
    bytes: (): Uint8Array<ArrayBuffer> => scratch.slice(0, used),
  }
}

/** Bytes of `,"hash":"…"`. */
const HASH_MEMBER = 74

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
  const shape = shapeOf(members)
  const texts = textsOf(members, shape)
  let out = ''
  for (const { from, label, next } of shape.sorted) {
    const text = texts[from]
    if (text !== undefined) out += (out === '' ? label : next) + text
  }
  return '{' + out + '}'
}

/** Of each member in the object's own order; undefined for what is left out. */
function textsOf(members: Record<string, unknown>, { keys }: Shape): (string | undefined)[] {
  const texts: (string | undefined)[] = new Array(keys.length)
  let at = 0
  for (const key in members) {
    const value = members[key]
    texts[at++] = value === undefined ? undefined : written(value)
  }
  return texts
}

function quoted(text: string): string {
  return text.length <= MAX_TEXT && PLAIN.test(text) ? '"' + text + '"' : JSON.stringify(sealableText(text))
}

interface Member {
  key: string
  /** Its place in the object's own order. */
  from: number
  /** `"key":` */
  label: string
  /** `,"key":` */
  next: string
}

interface Shape {
  /** In the object's own order. */
  keys: readonly string[]
  /** In the order of their names. */
  sorted: readonly Member[]
}

/**
 * Members in the order of their names, by an object's first name. Records have a handful of shapes, and sorting and quoting the names of
 * each object anew was half the cost of a canonical form (measured). An object is walked by `for in`, in its own order: the engine then
 * has each value at hand, where asking for it by name looks it up (a third of the rest).
 */
const shapes = new Map<string, Shape[]>()
const MAX_SHAPES = 16

function shapeOf(members: Record<string, unknown>): Shape {
  let first: string | undefined
  for (first in members) break
  const known = first === undefined ? undefined : shapes.get(first)
  if (known !== undefined) for (const shape of known) if (holds(members, shape)) return shape
  const keys = Object.keys(members)
  const sorted = keys.map(member).sort((a, b) => (a.key < b.key ? -1 : 1))
  const made = { keys, sorted }
  if (first === undefined) return made
  if (known !== undefined && known.length < MAX_SHAPES) known.push(made)
  else if (known === undefined && shapes.size < 10 * MAX_SHAPES) shapes.set(first, [made])
  return made
}

function holds(members: Record<string, unknown>, { keys }: Shape): boolean {
  let at = 0
  for (const key in members) if (key !== keys[at++]) return false
  return at === keys.length
}

/** Names are the program's own, and sorted as they are. */
function member(key: string, from: number): Member {
  if (!PLAIN.test(key)) throw new TypeError('A trace cannot hold a member whose name is not plain text.')
  return { key, from, label: `"${key}":`, next: `,"${key}":` }
}
