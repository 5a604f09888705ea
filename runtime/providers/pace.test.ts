import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { backoffDelay, sleep } from '../../shared/time/sleep.ts'
import { pace } from './pace.ts'

const monotonic = () => performance.now()
const never = new AbortController().signal
const waiting = (signal: AbortSignal) => ({ signal, drained: never, show: async () => undefined })

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

interface Provider {
  /** How long to wait; undefined: it takes the call. */
  ask(): { waitMs?: number } | undefined
}

/** Takes so many calls a second, with a small reserve, as OpenAI and Anthropic document. */
function bucket(perSecond: number, { says }: { says: boolean }): Provider {
  let [held, atMs] = [3, monotonic()]
  return {
    ask() {
      held = Math.min(3, held + ((monotonic() - atMs) / 1000) * perSecond)
      atMs = monotonic()
      if (held >= 1) {
        held--
        return undefined
      }
      return says ? { waitMs: ((1 - held) / perSecond) * 1000 } : {}
    },
  }
}

/** Takes so many calls in each minute, and says when the next minute begins. */
function perMinute(most: number): Provider {
  let [minute, taken] = [0, 0]
  return {
    ask() {
      const now = Math.floor(monotonic() / 60_000)
      if (now !== minute) [minute, taken] = [now, 0]
      return taken++ < most ? undefined : { waitMs: (now + 1) * 60_000 - monotonic() }
    },
  }
}

/** Callers at once, each with ten attempts and the pauses of a manifest that says nothing of them; gives the attempts of each. */
async function attemptsOf(callers: number, provider: Provider, answerMs = 500): Promise<{ of: number[]; ms: number }> {
  const one = pace({ monotonic })
  const call = async () => {
    for (let attempt = 1; attempt <= 10; attempt++) {
      await one.ready(waiting(never))
      const startedMs = monotonic()
      const refusal = provider.ask()
      if (refusal === undefined) {
        await sleep(answerMs)
        one.answered(startedMs)
        return attempt
      }
      await sleep(5)
      if (one.refused(startedMs, refusal.waitMs)) return Infinity
      const drawn = backoffDelay({ baseMs: 500, maxMs: 30_000, jitter: true }, attempt)
      await sleep(Math.min(30_000, Math.max(drawn, refusal.waitMs ?? 0)))
    }
    return Infinity
  }
  const all = Promise.all(Array.from({ length: callers }, call))
  let ms = 0
  void all.then(() => (ms = monotonic()))
  await vi.runAllTimersAsync()
  return { of: await all, ms }
}

describe('the pace of a model', () => {
  it.each([
    [0.5, true],
    [0.5, false],
    [1, true],
    [1, false],
    [5, false],
    [40, false],
  ])(
    'lets 200 callers through where a provider takes %s calls a second (says how long to wait: %s)',
    async (perSecond, says) => {
      const { of, ms } = await attemptsOf(200, bucket(perSecond, { says }))
      expect(Math.max(...of)).toBeLessThanOrEqual(8)
      // The rest of the time is what learning costs.
      expect(ms / 1000).toBeLessThan((200 / perSecond) * 1.6 + 20)
    },
  )

  it('lets 200 callers through where a provider counts by the minute', async () => {
    const { of, ms } = await attemptsOf(200, perMinute(60))
    expect(Math.max(...of)).toBeLessThanOrEqual(8)
    expect(ms).toBeLessThan(5 * 60_000)
  })

  it.each([1, 20, 200])(
    'holds %s callers for some two minutes where a provider takes no call and names no time',
    async callers => {
      const { ms } = await attemptsOf(callers, { ask: () => ({}) })
      expect(ms / 1000).toBeLessThan(180)
    },
  )

  it('spaces nothing where nothing is refused', async () => {
    const { of, ms } = await attemptsOf(200, { ask: () => undefined })
    expect([Math.max(...of), ms]).toEqual([1, 500])
  })

  it('keeps the order in which callers came, and leaves out those that have left', async () => {
    const one = pace({ monotonic })
    one.refused(0, 1000)
    const went: number[] = []
    const second = new AbortController()
    const turns = [never, second.signal, never].map((signal, at) =>
      one.ready(waiting(signal)).then(() => went.push(at)),
    )
    second.abort(new Error('cancelled'))
    await expect(turns[1]).rejects.toThrow('cancelled')
    await expect(one.ready(waiting(AbortSignal.abort(new Error('over'))))).rejects.toThrow('over')
    await vi.advanceTimersByTimeAsync(999)
    expect(went).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(went).toEqual([0])
    await vi.advanceTimersByTimeAsync(100)
    expect(went).toEqual([0, 2])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('waits a minute at most, whatever a provider says, and forgets a pace that was not needed for one', async () => {
    const one = pace({ monotonic })
    one.refused(0, 86_400_000)
    expect(one.isBusy()).toBe(true)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(one.isBusy()).toBe(false)
    await vi.advanceTimersByTimeAsync(60_001)
    await one.ready(waiting(never))
    await one.ready(waiting(never))
    expect(monotonic()).toBe(120_001)
  })
})
