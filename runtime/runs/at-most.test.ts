import { expect, it } from 'vitest'
import { atMost } from './at-most.ts'

it('does so many at a time, in order, and goes on after one that failed', async () => {
  const inTurn = atMost(2)
  const begun: number[] = []
  let running = 0
  let peak = 0
  const work = (at: number) =>
    inTurn(async () => {
      begun.push(at)
      peak = Math.max(peak, ++running)
      await Promise.resolve()
      running -= 1
      if (at === 1) throw new Error('no')
      return at
    })
  const ends = await Promise.allSettled([0, 1, 2, 3, 4, 5].map(work))
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', ...Array(4).fill('fulfilled')])
  expect([begun, peak]).toEqual([[0, 1, 2, 3, 4, 5], 2])
  expect(await work(6)).toBe(6)
})
