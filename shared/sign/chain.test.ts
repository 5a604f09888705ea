import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { journalGenesis } from '../../runtime/execution/journal/event.ts'
import { isFull } from '../../tests/slice.ts'
import { readJson } from '../json/read-json.ts'
import { recordChainChecker, recordHash, type Sealed, seal } from './record-chain.ts'
import { checkJournal, journalHash } from './testing/check-journal.ts'
import vectors from './vectors/chains.json' with { type: 'json' }

const nativeSha256 = (bytes: Uint8Array) => new Uint8Array(createHash('sha256').update(bytes).digest())

/** Any JSON value whose text has no lone surrogate: what a record can hold. */
const json = fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' })

describe('journal chain', () => {
  const { runId, genesis, events } = vectors.journal

  it('gives the published hashes', () => {
    expect(journalGenesis(runId)).toBe(genesis)
    expect(journalHash(genesis, events[0]!)).toBe(events[0]!.hash)
    expect(checkJournal(runId, events)).toEqual({ ok: true, head: events[1]!.hash, count: 2 })
  })

  it('does not hash aliases, nor anything else beside its eight members', () => {
    const aliased = events.map(event => ({ ...event, ts: event.at, data: event.payload, extra: 1 }))
    expect(checkJournal(runId, aliased).ok).toBe(true)
  })

  it('takes a journal without events as its genesis', () => {
    expect(checkJournal(runId, [])).toEqual({ ok: true, head: genesis, count: 0 })
  })

  it('names the first event that was edited, dropped, swapped or moved to another run', () => {
    const [first, second] = events as [(typeof events)[0], (typeof events)[1]]
    expect(checkJournal(runId, [first, { ...second, attempt: 2 }])).toMatchObject({ brokenAt: 2, reason: 'hash' })
    expect(checkJournal(runId, [second])).toMatchObject({ brokenAt: 1, reason: 'seq' })
    expect(checkJournal(runId, [second, first])).toMatchObject({ brokenAt: 1, reason: 'seq' })
    expect(checkJournal('another', events)).toMatchObject({ brokenAt: 1, reason: 'run' })
    expect(checkJournal(runId, [{ ...first, payload: { n: Number.NaN } }])).toMatchObject({ reason: 'shape' })
  })
})

describe('record chain', () => {
  it('gives the published hash', () => {
    expect(recordHash(vectors.record.record)).toBe(vectors.record.hash)
  })

  it('is the same under the portable and the native hash', () => {
    expect(recordHash(vectors.record.record, nativeSha256)).toBe(vectors.record.hash)
  })

  it('names the index of an edited, dropped, inserted or swapped record, also of the last', () => {
    const chain = build([{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }])
    const at = (i: number) => chain[i]!
    expect(firstBreak(chain)).toBeUndefined()
    expect(firstBreak([at(0), { ...at(1), n: 9 } as Sealed, at(2)])).toEqual({ index: 1, reason: 'hash' })
    expect(firstBreak([...chain.slice(0, 3), { ...at(3), n: 9 } as Sealed])).toEqual({ index: 3, reason: 'hash' })
    expect(firstBreak([at(0), at(2), at(3)])).toEqual({ index: 1, reason: 'seq' })
    expect(firstBreak([at(0), at(0), at(1)])).toEqual({ index: 1, reason: 'seq' })
    const rebuilt = seal({ n: 7 }, at(0))
    expect(firstBreak([at(0), rebuilt, at(2)])).toEqual({ index: 2, reason: 'prev_hash' })
  })

  it('goes on from a checkpoint', () => {
    const chain = build([{ n: 0 }, { n: 1 }, { n: 2 }])
    const checker = recordChainChecker(chain[0])
    expect(checker.push(chain[1]!)).toBeUndefined()
    expect(checker.push(chain[2]!)).toBeUndefined()
    expect(checker.head?.hash).toBe(chain[2]!.hash)
  })

  const most = isFull ? 100_000 : 10_000

  it(`holds for ${most} random records after serialise, parse and re-hash`, () => {
    let previous: Sealed | undefined
    let differences = 0
    const checker = recordChainChecker(undefined, nativeSha256)
    fc.assert(
      fc.property(fc.record({ cost: fc.double({ noNaN: true, noDefaultInfinity: true }), body: json }), record => {
        const sealed: Sealed = seal(record, previous, nativeSha256)
        const back = readJson(JSON.stringify(sealed)) as Sealed
        if (recordHash(back, nativeSha256) !== sealed.hash || checker.push(back) !== undefined) differences++
        previous = sealed
      }),
      { numRuns: most, endOnFailure: true },
    )
    expect(checker.count).toBe(most)
    expect(differences).toBe(0)
  })
})

function build(records: readonly object[]): Sealed[] {
  const chain: Sealed[] = []
  for (const record of records) chain.push(seal(record, chain.at(-1)))
  return chain
}

function firstBreak(records: readonly Sealed[]) {
  const checker = recordChainChecker()
  for (const record of records) {
    const broken = checker.push(record)
    if (broken) return broken
  }
  return undefined
}
