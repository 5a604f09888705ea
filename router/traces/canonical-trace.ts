import { GENESIS, type Sealed } from '../../shared/sign/record-chain.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
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
    pieces[at] += (at === 0 && pieces[0] === '' ? '' : ',') + quoted(key) + ':' + written(value)
  }
  return { beforeHash: pieces[0], beforePrevHash: pieces[1], beforeSeq: pieces[2], rest: pieces[3] }
}

export interface SealedText extends Sealed {
  /** The whole record, canonical, with its hash. */
  body: string
}

/** Gives a record its place after `previous`; the hash is that of `recordHash`. */
export function sealText(text: TraceText, previous: { seq: number; hash: string } | undefined, sha256: Sha256): SealedText {
  const seq = previous === undefined ? 0 : previous.seq + 1
  const prev_hash = previous === undefined ? GENESIS : previous.hash
  const head = '{' + text.beforeHash
  const tail = `${text.beforePrevHash},"prev_hash":"${prev_hash}"${text.beforeSeq},"seq":${seq}${text.rest}}`
  const hash = sha256Hex(utf8(head + tail), sha256)
  return { seq, prev_hash, hash, body: `${head},"hash":"${hash}"${tail}` }
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
    if (value !== undefined) out += (out === '' ? '' : ',') + quoted(key) + ':' + written(value)
  }
  return '{' + out + '}'
}

function quoted(text: string): string {
  return text.length <= MAX_TEXT && PLAIN.test(text) ? '"' + text + '"' : JSON.stringify(sealableText(text))
}

/** Records have a handful of shapes; sorting the keys of each object anew was half the cost of a canonical form (measured). */
const orders = new Map<string, readonly string[]>()
const MAX_ORDERS = 500

function sortedKeys(members: Record<string, unknown>): readonly string[] {
  const keys = Object.keys(members)
  const shape = keys.join()
  const known = orders.get(shape)
  if (known !== undefined && known.length === keys.length) return known
  keys.sort()
  if (orders.size < MAX_ORDERS) orders.set(shape, keys)
  return keys
}
