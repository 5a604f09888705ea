import fc from 'fast-check'
import { expect, it } from 'vitest'
import { silentLog } from '../log/log.ts'
import { inbox } from './inbox.ts'

it('hands on in one batch what a stream gives one by one in one turn of the loop', async () => {
  const batches: number[][] = []
  const box = inbox<number>(async batch => void batches.push([...batch]), { log: silentLog() })
  for (let item = 0; item < 10; item++) await box.put(item)
  await box.idle()
  expect(batches).toEqual([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
})

it('hands on everything once and in order, and lets its sender wait when it is full', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 5 }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 8 }),
      async (sizes, most) => {
        const handled: number[] = []
        let heaviest = 0
        const box = inbox<{ at: number; size: number }>(
          async batch => {
            const weight = batch.slice(0, -1).reduce((sum, { size }) => sum + size, 0)
            heaviest = Math.max(heaviest, weight)
            handled.push(...batch.map(({ at }) => at))
          },
          { log: silentLog(), weigh: ({ size }) => size, most },
        )
        for (const [at, size] of sizes.entries()) await box.put({ at, size })
        await box.idle()
        expect(handled).toEqual(sizes.map((_, at) => at))
        // All but the last of a batch had room.
        expect(heaviest).toBeLessThan(most)
      },
    ),
    { numRuns: 50 },
  )
})
