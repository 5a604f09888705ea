import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import {
  abandoned,
  type Breaker,
  breakers,
  COOL_DOWN_MS,
  closedBreaker,
  enter,
  failed,
  isCallable,
  MAX_COOL_DOWN_MS,
  type Pass,
  succeeded,
  tripped,
} from './breakers.ts'

const history = (...calls: [step: typeof failed | typeof succeeded, at: number][]): Breaker =>
  calls.reduce((breaker, [step, at]) => step(breaker, 0, at), closedBreaker)
const failures = (count: number, at = 0) => Array.from({ length: count }, (): [typeof failed, number] => [failed, at])
const successes = (count: number, at = 0) =>
  Array.from({ length: count }, (): [typeof succeeded, number] => [succeeded, at])

describe('breaker', () => {
  it('opens at the fifth failure in 30 s when at least half of the calls failed', () => {
    expect(history(...failures(4)).phase).toBe('closed')
    expect(history(...failures(5)).phase).toBe('open')
    expect(history(...successes(5), ...failures(5)).phase).toBe('open')
    expect(history(...successes(6), ...failures(5)).phase).toBe('closed')
    expect(history(...failures(4, 0), ...failures(1, 29_999)).phase).toBe('open')
    expect(history(...failures(4, 0), ...failures(1, 30_000)).phase).toBe('closed')
  })

  it('lets one probe through after its cool-down, and closes when that succeeds', () => {
    const open = history(...failures(5, 1000))
    expect(enter(open, 10_999).pass).toBeNull()
    const half = enter(open, 11_000)
    expect(half).toMatchObject({ breaker: { phase: 'half_open' }, pass: 1 })
    expect(enter(half.breaker, 11_001).pass).toBeNull()
    expect(succeeded(half.breaker, 1, 12_000)).toEqual({ ...closedBreaker, probe: 1 })
  })

  it('doubles its cool-down from 10 s up to 120 s while probes fail', () => {
    let breaker = history(...failures(5))
    let now = 0
    const pauses: number[] = []
    for (let i = 0; i < 6; i++) {
      pauses.push(breaker.until - now)
      now = breaker.until
      const half = enter(breaker, now)
      breaker = failed(half.breaker, half.pass!, now)
    }
    expect(pauses).toEqual([10_000, 20_000, 40_000, 80_000, 120_000, 120_000])
  })

  it('opens at once for as long as a refusal asks, 10 s when it does not say', () => {
    expect(tripped(closedBreaker, 0, 1000, 3000)).toMatchObject({ phase: 'open', until: 4000 })
    expect(tripped(closedBreaker, 0, 1000, null)).toMatchObject({ phase: 'open', until: 11_000 })
    const twice = tripped(tripped(closedBreaker, 0, 0, null), 0, 10, null)
    expect(twice).toMatchObject({ until: 10_000, coolDownMs: 20_000 })
    expect(tripped(tripped(closedBreaker, 0, 0, 1000), 0, 10, 60_000).until).toBe(60_010)
  })

  it('takes another probe when one was left without an answer', () => {
    const half = enter(history(...failures(5)), 10_000)
    expect(enter(abandoned(half.breaker, half.pass!, 10_500), 10_500).pass).toBe(2)
    expect(enter(half.breaker, 10_000 + 600_000).pass).toBe(2)
  })

  it('does not listen to calls from before it opened', () => {
    const half = enter(history(...failures(5)), 10_000).breaker
    expect(succeeded(half, 0, 10_001)).toBe(half)
    expect(failed(half, 0, 10_001)).toBe(half)
    const open = history(...failures(5))
    expect(succeeded(open, 0, 1)).toBe(open)
  })

  const events = fc.array(
    fc.record({
      kind: fc.constantFrom('enter', 'enter', 'enter', 'ok', 'fail', 'fail', 'trip', 'drop'),
      wait: fc.oneof(fc.nat(20), fc.nat(20_000)),
      pick: fc.nat(),
      retryAfter: fc.option(fc.nat(200_000), { nil: null }),
    }),
    { minLength: 20, maxLength: 60, size: 'max' },
  )

  it('never lets two probes out at once, never passes while it is open, and always recovers', () => {
    let probes = 0
    fc.assert(
      fc.property(events, list => {
        let breaker = closedBreaker
        let now = 0
        const out: Pass[] = []
        for (const { kind, wait, pick, retryAfter } of list) {
          now += wait
          const before = breaker
          if (kind === 'enter') {
            const entered = enter(breaker, now)
            expect(entered.pass !== null).toBe(isCallable(breaker, now))
            breaker = entered.breaker
            if (entered.pass === null) expect(now).toBeLessThan(before.until)
            else {
              if (entered.pass > 0) {
                probes++
                expect(before.phase).not.toBe('closed')
                // The lease of a probe is longer than this walk, so an earlier one must have ended.
                if (before.phase === 'half_open') expect(out).not.toContain(before.probe)
              } else expect(before.phase).toBe('closed')
              out.push(entered.pass)
            }
          } else if (out.length > 0) {
            const [pass] = out.splice(pick % out.length, 1)
            if (kind === 'ok') breaker = succeeded(breaker, pass!, now)
            else if (kind === 'fail') breaker = failed(breaker, pass!, now)
            else if (kind === 'trip') breaker = tripped(breaker, pass!, now, retryAfter)
            else breaker = abandoned(breaker, pass!, now)
          }
          expect(breaker.coolDownMs).toBeGreaterThanOrEqual(COOL_DOWN_MS)
          expect(breaker.coolDownMs).toBeLessThanOrEqual(MAX_COOL_DOWN_MS)
          expect(breaker.seconds.length).toBeLessThanOrEqual(30)
          if (breaker.phase === 'closed') {
            const failures = breaker.seconds.reduce((sum, second) => sum + second.failed, 0)
            const calls = breaker.seconds.reduce((sum, second) => sum + second.calls, 0)
            // A success can only make the share smaller, so a closed breaker is one that should be.
            if (failures >= 5) expect(failures / calls).toBeLessThan(1)
          }
        }
        const later = now + 700_000
        const entered = enter(breaker, later)
        expect(entered.pass).not.toBeNull()
        expect(succeeded(entered.breaker, entered.pass!, later).phase).toBe('closed')
      }),
      { numRuns: 500 },
    )
    expect(probes).toBeGreaterThan(200)
  })
})

describe('breakers', () => {
  it('opens a provider for everyone on faults, and for one credential on a refusal', () => {
    const clock = manualClock()
    const all = breakers(clock)
    all.enter('openai', 'key-a')?.refused(2000)
    expect([all.isCallable('openai', 'key-a'), all.isCallable('openai', 'key-b')]).toEqual([false, true])
    expect(all.phaseOf('openai')).toBe('closed')
    for (let i = 0; i < 5; i++) all.enter('anthropic', 'key-a')?.failed()
    expect(all.phaseOf('anthropic')).toBe('open')
    expect(all.enter('anthropic', 'key-b')).toBeUndefined()
    clock.advance(2000)
    expect(all.isCallable('openai', 'key-a')).toBe(true)
  })

  it('recovers by one probe, of the provider as of the credential', () => {
    const clock = manualClock()
    const all = breakers(clock)
    for (let i = 0; i < 5; i++) all.enter('p', 'k')?.failed()
    all.enter('q', 'k')?.refused(null)
    clock.advance(10_000)
    for (const provider of ['p', 'q']) {
      const probe = all.enter(provider, 'k')
      expect(probe).toBeDefined()
      expect(all.enter(provider, 'k')).toBeUndefined()
      probe?.succeeded()
      expect(all.enter(provider, 'k')).toBeDefined()
    }
    expect(all.phaseOf('p')).toBe('closed')
  })

  it('gives back the place of a probe whose client left', () => {
    const clock = manualClock()
    const all = breakers(clock)
    all.enter('p', 'k')?.refused(1000)
    clock.advance(1000)
    all.enter('p', 'k')?.abandoned()
    expect(all.enter('p', 'k')).toBeDefined()
  })

  it('keeps no more than ten thousand refused keys', () => {
    const all = breakers(manualClock())
    for (let i = 0; i <= 10_000; i++) all.enter('p', `k${i}`)?.refused(1000)
    expect([all.isCallable('p', 'k0'), all.isCallable('p', 'k1')]).toEqual([true, false])
  })
})
