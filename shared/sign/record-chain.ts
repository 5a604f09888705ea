import { canonicalize } from './jcs.ts'
import { type Sha256, sha256, sha256Hex } from './sha256.ts'

/** `prev_hash` of the first record of a chain. */
export const GENESIS = '0'.repeat(64)

export interface ChainPosition {
  seq: number
  prev_hash: string
}

export interface Sealed extends ChainPosition {
  hash: string
}

export interface RecordBreak {
  /** 0-based position of the first record that fails any check. */
  index: number
  reason: 'seq' | 'prev_hash' | 'hash' | 'shape'
}

/** Lower-hex SHA-256 of the canonical record without its `hash` (docs/spec/proof.md). */
export function recordHash(record: object, hash: Sha256 = sha256): string {
  const { hash: _own, ...body } = record as { hash?: unknown }
  return sha256Hex(canonicalize(body), hash)
}

/** Gives a record its place and hash after `previous` (undefined at the start of a chain). */
export function seal<T extends object>(
  record: T,
  previous: Sealed | undefined,
  hash: Sha256 = sha256,
): Omit<T, keyof Sealed> & Sealed {
  const placed = {
    ...record,
    seq: previous === undefined ? 0 : previous.seq + 1,
    prev_hash: previous === undefined ? GENESIS : previous.hash,
  }
  return { ...placed, hash: recordHash(placed, hash) }
}

/**
 * Checks one chain record by record in constant memory. Start from a checkpoint by handing in the record before the
 * first one (its seq and hash); positions stay relative to the first record pushed.
 */
export function recordChainChecker(after?: Sealed, hash: Sha256 = sha256) {
  let previous = after
  let index = -1
  let broken: RecordBreak | undefined
  const fail = (reason: RecordBreak['reason']) => {
    broken = { index, reason }
    return broken
  }
  return {
    /** The first break of the chain so far, or undefined while it holds. */
    push(record: Sealed): RecordBreak | undefined {
      if (broken) return broken
      index++
      if (record.seq !== (previous === undefined ? 0 : previous.seq + 1)) return fail('seq')
      if (record.prev_hash !== (previous === undefined ? GENESIS : previous.hash)) return fail('prev_hash')
      let own: string
      try {
        own = recordHash(record, hash)
      } catch {
        return fail('shape')
      }
      if (record.hash !== own) return fail('hash')
      previous = { seq: record.seq, prev_hash: record.prev_hash, hash: record.hash }
      return undefined
    },
    get head(): Sealed | undefined {
      return previous
    },
    get count(): number {
      return index + 1
    },
  }
}
