import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { duration } from '../env/read-env.ts'
import { backoffDelay, sleep } from './sleep.ts'
import { manualClock } from './testing/manual-clock.ts'

afterEach(() => vi.useRealTimers())

describe('sleep', () => {
  it('ends at its time', async () => {
    vi.useFakeTimers()
    const done = vi.fn()
    void sleep(1000).then(done)
    await vi.advanceTimersByTimeAsync(999)
    expect(done).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(done).toHaveBeenCalledOnce()
  })

  it('rejects with the reason as soon as the signal aborts, and leaves no timer', async () => {
    vi.useFakeTimers()
    const abort = new AbortController()
    const waiting = sleep(60_000, abort.signal)
    abort.abort(new Error('gone'))
    await expect(waiting).rejects.toThrow('gone')
    expect(vi.getTimerCount()).toBe(0)
    await expect(sleep(1, abort.signal)).rejects.toThrow('gone')
  })
})

describe('backoffDelay', () => {
  it('doubles up to the maximum, and jitter only ever shortens it', () => {
    const policy = { baseMs: 500, maxMs: 30_000, jitter: false }
    expect([1, 2, 3, 7, 80].map(n => backoffDelay(policy, n))).toEqual([500, 1000, 2000, 30_000, 30_000])
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (n, draw) => {
        const delay = backoffDelay({ ...policy, jitter: true }, n, () => draw)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(backoffDelay(policy, n))
      }),
    )
  })
})

describe('a duration of the environment', () => {
  it('reads each unit, and a plain number as seconds', () => {
    expect(['30', '30s', '500ms', '5m', '24h', '1.5s'].map(text => duration.parse(text))).toEqual([
      30_000, 30_000, 500, 300_000, 86_400_000, 1500,
    ])
  })

  it('does not guess', () => {
    for (const text of ['', '-1', '5 m', '1d', 's', '1e3']) expect(duration.safeParse(text).success, text).toBe(false)
  })
})

describe('manualClock', () => {
  it('moves both hands together', () => {
    const clock = manualClock(new Date(1000))
    clock.advance(250)
    expect([clock.now().getTime(), clock.monotonic()]).toEqual([1250, 250])
  })
})
