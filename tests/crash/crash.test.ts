import { describe, expect, it } from 'vitest'
import { slice } from '../slice.ts'
import { corpus } from './corpus.ts'
import { differences, live, type Moment, momentKinds, paused } from './lives.ts'

const CASES = slice(
  'killed runs',
  corpus.map((one, place) => ({ name: one.name, one, place })),
  4,
)

/** One kill of each kind in each case, at a place that differs from case to case; `npm run crash-matrix` does them all. */
describe('a process that is killed', () => {
  it.each(CASES)(
    'loses nothing: $name',
    async ({ one, place }) => {
      const golden = await live(one)
      expect(golden.chain.ok).toBe(true)
      const moments = momentKinds.map((kind, index): Moment => {
        const most = kind.endsWith('commit') ? golden.counts.commit : golden.counts.effect
        return { kind, at: 1 + ((place * 5 + index * 3 + 1) % most) }
      })
      const after = await Promise.all(moments.map(async moment => ({ moment, life: await live(one, moment) })))
      for (const { moment, life } of after)
        expect({ moment, wrong: differences(one, golden, life) }).toEqual({ moment, wrong: [] })
      expect(after.some(({ life }) => life.killed)).toBe(true)
    },
    60_000,
  )
})

describe('an owner that is paused beyond its lease', () => {
  it.each(['before-commit', 'after-effect'] as const)(
    'writes nothing once it goes on: %s',
    async kind => {
      const one = corpus[0]!
      const golden = await live(one)
      const after = await paused(one, { kind, at: kind === 'before-commit' ? 7 : 4 })
      expect(after.paused).toBe(true)
      expect(after.chain.ok).toBe(true)
      // The call that was open when it was paused may have been made twice, by the one and by the other.
      expect(differences(one, golden, after).filter(line => !/POST/.test(line))).toEqual([])
    },
    60_000,
  )
})
