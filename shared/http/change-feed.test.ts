import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { changeFeed } from './change-feed.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function watched(again?: { afterMs: number; everyMs: number }) {
  const marks = new Map([
    ['a', '1'],
    ['b', '1'],
  ])
  const asked: string[][] = []
  const store = { tookMs: 0 }
  const feed = changeFeed(
    {
      async marks(tenants) {
        asked.push([...tenants])
        const answer = new Map(marks)
        await new Promise(resolve => setTimeout(resolve, store.tookMs))
        return answer
      },
    },
    { monotonic: () => Date.now(), ...(again && { again }) },
  )
  async function open(tenantId: string) {
    const gone = new AbortController()
    /** When it was told. */
    const told: number[] = []
    const ended = (async () => {
      for await (const { event } of feed.follow(tenantId, gone.signal)) {
        expect(event).toBe('changed')
        told.push(Date.now())
      }
    })()
    await vi.advanceTimersByTimeAsync(0)
    async function close() {
      gone.abort()
      await ended
    }
    return { told, close }
  }
  return { marks, asked, store, feed, open }
}

const after = (ms: number) => vi.advanceTimersByTimeAsync(ms)

it('tells the pages of a tenant of its changes, and no others, with one question for all of them', async () => {
  const { marks, asked, open } = watched()
  const [one, two, other] = [await open('a'), await open('a'), await open('b')]
  await after(300)
  // What came between the page and its line is not missed.
  expect([one, two, other].map(({ told }) => told.splice(0).length)).toEqual([1, 1, 1])
  marks.set('a', '2')
  await after(150)
  expect([one, two, other].map(({ told }) => told.length)).toEqual([1, 1, 0])
  const late = await open('b')
  await after(150)
  expect([other.told.length, late.told.length]).toEqual([0, 1])
  expect(new Set(asked.map(tenants => tenants.join(' ')))).toEqual(new Set(['a b']))
  for (const { close } of [one, two, other, late]) await close()
  const before = asked.length
  await after(5000)
  expect(asked).toHaveLength(before)
})

it('asks a store that is slow so seldom that asking takes a tenth of the time', async () => {
  const { asked, store, open } = watched()
  store.tookMs = 100
  const { close } = await open('a')
  await after(11_000)
  expect(asked.length).toBeGreaterThan(8)
  expect(asked.length).toBeLessThanOrEqual(11)
  await close()
})

it('keeps no page waiting for one answer that was slow', async () => {
  const { marks, asked, store, open } = watched()
  const { told, close } = await open('a')
  await after(1000)
  store.tookMs = 1000
  await after(150)
  store.tookMs = 0
  marks.set('a', '2')
  const before = asked.length
  await after(1200)
  expect(asked.length).toBeGreaterThan(before)
  expect(told).toHaveLength(2)
  await close()
})

it('asks once at a time, also where all pages close and others open while it asks', async () => {
  const { asked, store, open } = watched()
  store.tookMs = 100
  const first = await open('a')
  await after(150)
  await first.close()
  const second = await open('a')
  await after(11_000)
  expect(asked.length).toBeLessThanOrEqual(12)
  await second.close()
})

it('tells a thousand pages in turns: all of them, none twice before another, and some eighty a second', async () => {
  const { marks, feed, open } = watched()
  const first = await open('a')
  expect(feed.isCrowded('a')).toBe(false)
  const pages = [first, ...(await Promise.all(Array.from({ length: 999 }, () => open('a'))))]
  await after(15_000)
  expect([feed.isCrowded('a'), feed.mark('a')]).toEqual([true, '1'])
  expect(pages.map(({ told }) => told.splice(0).length)).toEqual(pages.map(() => 1))
  const began = Date.now()
  for (let second = 0; second < 30; second++) {
    marks.set('a', String(second + 2))
    await after(1000)
  }
  const times = pages.flatMap(({ told }) => told)
  expect(times.length).toBeGreaterThan(30 * 75)
  expect(times.length).toBeLessThan(30 * 85 + 40)
  const counts = pages.map(({ told }) => told.length)
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
  expect(times.filter(at => at - began < 300).length, 'the first of them at once').toBeGreaterThanOrEqual(40)
  for (const { close } of pages) await close()
  expect([feed.isCrowded('a'), feed.mark('a')]).toEqual([false, undefined])
})

it('has pages look once more some time after the last change, and now and then', async () => {
  const { marks, open } = watched({ afterMs: 3000, everyMs: 60_000 })
  const { told, close } = await open('a')
  await after(2000)
  marks.set('a', '2')
  const began = Date.now()
  await after(200_000)
  expect(
    told
      .splice(0)
      .filter(at => at > began)
      .map(at => Math.round((at - began) / 1000)),
  ).toEqual([0, 3, 63, 123, 183])
  await close()
})

it('goes on after a question that failed, and ends when the service does', async () => {
  let fails = true
  const live = changeFeed(
    {
      async marks() {
        if (fails) throw new Error('busy')
        return new Map([['a', String(Math.floor(Date.now() / 1500))]])
      },
    },
    { monotonic: () => Date.now() },
  )
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
