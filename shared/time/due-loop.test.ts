import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { dueLoop } from './due-loop.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const clock = { now: () => new Date() }

it('looks when the next thing is due, and at least once a second', async () => {
  const at: number[] = []
  const due = [300, 5000, undefined]
  const start = Date.now()
  const loop = dueLoop({
    clock,
    failed: vi.fn(),
    async look() {
      at.push(Date.now() - start)
      const next = due.shift()
      return next === undefined ? undefined : start + next
    },
  })
  loop.start()
  loop.start()
  await vi.advanceTimersByTimeAsync(3500)
  expect(at).toEqual([0, 300, 1300, 2300, 3300])
  await loop.stop()
  expect(vi.getTimerCount()).toBe(0)
})

it('looks at once when it is woken, also by something that came during a look, and never twice at a time', async () => {
  const looks: (() => void)[] = []
  const loop = dueLoop({
    clock,
    failed: vi.fn(),
    look: () => new Promise<undefined>(resolve => looks.push(() => resolve(undefined))),
  })
  loop.start()
  await vi.advanceTimersByTimeAsync(0)
  loop.wake()
  loop.wake()
  await vi.advanceTimersByTimeAsync(5000)
  expect(looks.length).toBe(1)
  looks[0]!()
  await vi.advanceTimersByTimeAsync(0)
  expect(looks.length).toBe(2)
  looks[1]!()
  await vi.advanceTimersByTimeAsync(10)
  loop.wake()
  await vi.advanceTimersByTimeAsync(0)
  expect(looks.length).toBe(3)
  const stopped = loop.stop()
  looks[2]!()
  await stopped
  await vi.advanceTimersByTimeAsync(5000)
  expect(looks.length).toBe(3)
})

it('says that a look failed and goes on, and takes a breath where something stays due', async () => {
  const failed = vi.fn()
  let looks = 0
  const loop = dueLoop({
    clock,
    failed,
    async look() {
      if (++looks === 1) throw new Error('busy')
      return Date.now() - 10
    },
  })
  loop.start()
  await vi.advanceTimersByTimeAsync(999)
  expect([looks, failed.mock.calls.length]).toEqual([1, 1])
  await vi.advanceTimersByTimeAsync(501)
  expect(looks).toBe(12)
  await loop.stop()
})
