import { canonicalize } from '../../shared/sign/jcs.ts'
import { GENESIS, type Sealed } from '../../shared/sign/record-chain.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

/** The longest string of a sealed record (docs/spec/router.md §1.2). */
const MAX_TEXT = 512

/**
 * Text as a sealed record may hold it: no lone surrogate, no NUL (a text column would be cut there), at most 512 UTF-16 units.
 */
export function sealableText(text: string): string {
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
  const members = isSealable(record) ? record : sealableMembers(record)
  let [beforeHash, beforePrevHash, beforeSeq, rest] = ['', '', '', '']
  for (const name of Object.keys(members).sort()) {
    const value = (members as Record<string, unknown>)[name]
    if (value === undefined) continue
    const text = `,${JSON.stringify(name)}:${canonicalize(value)}`
    if (name < 'hash') beforeHash += text
    else if (name < 'prev_hash') beforePrevHash += text
    else if (name < 'seq') beforeSeq += text
    else rest += text
  }
  return { beforeHash: beforeHash.slice(1), beforePrevHash, beforeSeq, rest }
}

function isSealable(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= MAX_TEXT && value.isWellFormed() && !value.includes('\0')
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every(isSealable)
}

/** The value with every text of it made sealable. */
function sealable(value: unknown): unknown {
  if (typeof value === 'string') return sealableText(value)
  if (Array.isArray(value)) return value.map(sealable)
  return typeof value === 'object' && value !== null ? sealableMembers(value) : value
}

function sealableMembers(object: object): object {
  return Object.fromEntries(Object.entries(object).map(([name, member]) => [name, sealable(member)]))
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
