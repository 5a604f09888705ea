import { expect, it } from 'vitest'
import { nextTurn, pageTurn, sharePageTurns } from './sleep.ts'

it('lets a request of some rounds pass between two pages, however many read', async () => {
  sharePageTurns()
  const pages = new Map<number, number>()
  let read = 0
  const reader = async (id: number) => {
    for (let page = 0; page < 3; page++) {
      await pageTurn()
      read++
      pages.set(id, page)
    }
  }
  const readers = Array.from({ length: 10 }, (_, id) => reader(id))
  const waited: number[] = []
  while (read < 30) {
    const before = read
    for (let round = 0; round < 5; round++) await new Promise<void>(nextTurn)
    waited.push(read - before)
  }
  await Promise.all(readers)
  expect(Math.max(...waited)).toBe(1)
  expect([...pages.values()]).toEqual(Array(10).fill(2))
})
