import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { changeFeed } from './change-feed.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function watched() {
  const marks = new Map([
    ['a', '1'],
    ['b', '1'],
  ])
  const asked: string[][] = []
  const live = changeFeed({
    async marks(tenants) {
      asked.push([...tenants])
      return new Map(marks)
    },
  })
  async function open(tenantId: string) {
    const gone = new AbortController()
    const told: string[] = []
    const ended = (async () => {
      for await (const { event } of live.follow(tenantId, gone.signal)) told.push(event)
    })()
    await vi.advanceTimersByTimeAsync(0)
    return { told, gone, ended }
  }
  return { marks, asked, live, open }
}

it('tells the pages of a tenant of its changes, and no others, with one question for all of them', async () => {
  const { marks, asked, open } = watched()
  const [one, two, other] = [await open('a'), await open('a'), await open('b')]
  await vi.advanceTimersByTimeAsync(300)
  const toldBefore = [one, two, other].map(({ told }) => told.splice(0).length)
  // As it opens, and with the first look: what came between the two is not missed.
  expect(toldBefore).toEqual([2, 2, 2])
  marks.set('a', '2')
  await vi.advanceTimersByTimeAsync(150)
  expect([one.told, two.told, other.told]).toEqual([['changed'], ['changed'], []])
  expect(asked).toEqual([
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b'],
  ])
  for (const { gone, ended } of [one, two, other]) {
    gone.abort()
    await ended
  }
  await vi.advanceTimersByTimeAsync(5000)
  expect(asked).toHaveLength(3)
})

it('goes on after a question that failed, and ends when the service does', async () => {
  let fails = true
  const live = changeFeed({
    async marks() {
      if (fails) throw new Error('busy')
      return new Map([['a', String(Math.floor(Date.now() / 1500))]])
    },
  })
  const told: string[] = []
  const ended = (async () => {
    for await (const { event } of live.follow('a', new AbortController().signal)) told.push(event)
  })()
  await vi.advanceTimersByTimeAsync(2500)
  expect(told).toHaveLength(1)
  fails = false
  await vi.advanceTimersByTimeAsync(5000)
  expect(told.length).toBeGreaterThan(2)
  live.close()
  await ended
  expect(live.watched).toBe(0)
})
