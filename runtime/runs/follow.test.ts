import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JournalEntry } from '../execution/journal/event.ts'
import type { Watcher } from '../execution/run-watchers.ts'
import { follow } from './follow.ts'

const entry = (seq: number) => ({ seq }) as JournalEntry
const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await null
}

/** What happens to a run, one after the other, each followed by some turns in which the follower may act. */
const happening = fc.record({
  kind: fc.constantFrom('here', 'here', 'elsewhere', 'told') as fc.Arbitrary<'here' | 'elsewhere' | 'told'>,
  entries: fc.integer({ min: 1, max: 4 }),
  turns: fc.integer({ min: 0, max: 12 }),
  fixture: fc.boolean(),
})

const stories = fc.array(happening, { maxLength: 30 })
/** What was read before, how many entries came between that and the watching, and whether the time between was short enough to be known. */
const beginnings = fc.option(
  fc.record({
    between: fc.integer({ min: 0, max: 3 }),
    isKnown: fc.boolean(),
    isHere: fc.boolean(),
    isRead: fc.boolean(),
  }),
  { nil: undefined },
)

test('a follower gets each entry once and in order, whether it is handed on, waited for or read', async () => {
  let handed = 0
  await fc.assert(
    fc.asyncProperty(stories, fc.integer({ min: 1, max: 6 }), beginnings, async (story, fromSeq, beginning) => {
      let seq = 3
      let over = false
      let watcher: Watcher | undefined
      let fixture = true
      const runs = {
        // Some pages end before their limit.
        page: async (_: string, from: number, most: number) => {
          const to = seq
          await turns(from % 3)
          const length = Math.max(0, Math.min(from % 2 === 0 ? 2 : most, to - from + 1))
          const entries = Array.from({ length }, (_, at) => entry(from + at))
          return { entries, isLast: from + length > to }
        },
        progress: async () => ({ status: over ? 'succeeded' : 'running' }) as never,
      }
      const runWatchers = {
        watch(_: string, one: Watcher) {
          watcher = one
          return () => undefined
        },
      }
      const lists: JournalEntry[][] = []
      const opening = beginning && {
        page: beginning.isRead ? await runs.page('run', fromSeq, 500) : undefined,
        terminal: false,
        since: () => (beginning.isKnown ? { lists, seq: beginning.isHere ? 0 : seq, terminal: over } : undefined),
      }
      const between = beginning?.between ?? 0
      if (beginning?.isHere && between > 0) lists.push(Array.from({ length: between }, (_, at) => entry(seq + 1 + at)))
      seq += between
      const got: number[] = []
      const take = (list: readonly JournalEntry[]) => void got.push(...list.map(one => one.seq))
      const gone = new AbortController().signal
      const all = (async () => {
        const hand = (list: readonly JournalEntry[]) => {
          if (fixture) take(list)
          if (fixture) handed++
          return fixture
        }
        const given = { fromSeq, live: true, gone, hand, ...(opening && { opening }) }
        for await (const list of follow({ runs, runWatchers }, 'run', given)) {
          take(list)
          await turns(list.length % 3)
        }
      })()
      await turns(1)
      for (const { kind, entries, turns: count, fixture: has } of story) {
        fixture = has
        const first = seq + 1
        if (kind !== 'told') seq += entries
        if (kind === 'here') watcher!.entries(Array.from({ length: entries }, (_, at) => entry(first + at)))
        else if (kind === 'told') watcher!.moved(seq, false)
        await turns(count)
      }
      over = true
      watcher!.moved(seq, true)
      await all
      const expected = Array.from({ length: Math.max(0, seq - fromSeq + 1) }, (_, at) => fromSeq + at)
      expect(got).toEqual(expected)
    }),
    { numRuns: 2000 },
  )
  expect(handed).toBeGreaterThan(100)
})
