import { describe, expect, it } from 'vitest'
import { isFull, slice } from '../slice.ts'
import { corpus } from './corpus.ts'
import { differences, live, type Moment, troubles } from './lives.ts'

const CASES = slice(
  'runs in trouble',
  corpus.map((one, place) => ({ name: one.name, one, place })),
  2,
)
let refused = 0

/** Two places of each kind in each case, which differ from case to case. */
describe('a process in trouble', () => {
  it.each(CASES)(
    'goes on where its disk was full or its clock jumped: $name',
    async ({ one, place }) => {
      const golden = await live(one)
      const quick = troubles.filter(kind => kind !== 'busy')
      const moments = quick.flatMap((kind, index) =>
        [0, 1].map((half): Moment => {
          const most = golden.counts.commit
          return { kind, at: 1 + ((place * 3 + index * 2 + half * (most >> 1)) % most) }
        }),
      )
      const lives = await Promise.all(moments.map(moment => live(one, moment)))
      refused += lives.reduce((sum, life) => sum + life.counts.refused, 0)
      const found = lives.map((life, index) => ({ moment: moments[index], wrong: differences(one, golden, life) }))
      expect(found).toEqual(moments.map(moment => ({ moment, wrong: [] })))
    },
    60_000,
  )

  it('goes on where another process held its database for longer than it waits', async () => {
    const [one] = corpus
    const golden = await live(one!)
    const life = await live(one!, { kind: 'busy', at: 7 })
    expect(life.counts.refused).toBeGreaterThan(0)
    expect(differences(one!, golden, life)).toEqual([])
  })

  it('was refused something on the way', () => {
    expect(refused).toBeGreaterThan(isFull ? 5 : 0)
    console.info(`${refused} commits were refused by a full disk`)
  })
})
