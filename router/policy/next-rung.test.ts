import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterFault, afterGateFail, afterOverflow, bestAttempt, type Progress, type RungState } from './next-rung.ts'

const ladder = (providers: string, over: Partial<RungState>[] = []): RungState[] =>
  [...providers].map((provider, rung) => ({
    rung,
    provider,
    eligible: true,
    maxInputTokens: null,
    callable: true,
    ...over[rung],
  }))
const at = (rungs: RungState[], tried: number[], over: Partial<Progress> = {}): Progress => ({
  ladder: rungs,
  tried,
  escalations: 0,
  retries: 0,
  floor: 0,
  ceiling: rungs.length - 1,
  maxEscalations: 15,
  maxAttempts: 6,
  ...over,
})

describe('afterGateFail', () => {
  it('goes exactly one eligible rung up', () => {
    const rungs = ladder('aaaa', [{}, { eligible: false }])
    expect(afterGateFail(at(ladder('aaa'), [0]))).toEqual({ rung: 1, cause: 'escalation' })
    expect(afterGateFail(at(rungs, [0]))).toEqual({ rung: 2, cause: 'escalation' })
    expect(afterGateFail(at(rungs, [0, 2, 3]))).toEqual({ rung: null, because: 'no_rung' })
  })

  it('skips a rung that was tried before a failover went below it', () => {
    expect(afterGateFail(at(ladder('aba'), [1, 0]))).toEqual({ rung: 2, cause: 'escalation' })
  })

  it('stops at the limits of the route and at the ceiling', () => {
    const rungs = ladder('aaa')
    expect(afterGateFail(at(rungs, [0], { maxEscalations: 0 }))).toEqual({ rung: null, because: 'max_escalations' })
    expect(afterGateFail(at(rungs, [0], { maxAttempts: 1 }))).toEqual({ rung: null, because: 'max_attempts' })
    expect(afterGateFail(at(rungs, [0], { ceiling: 0 }))).toEqual({ rung: null, because: 'no_rung' })
  })
})

describe('afterOverflow', () => {
  it('goes to the next rung whose window is larger or unknown', () => {
    const rungs = ladder('aaaa', [{ maxInputTokens: 100 }, { maxInputTokens: 100 }, { maxInputTokens: 200 }])
    expect(afterOverflow(at(rungs, [0]))).toEqual({ rung: 2, cause: 'overflow' })
    expect(afterOverflow(at(rungs, [0, 2]))).toEqual({ rung: 3, cause: 'overflow' })
    expect(afterOverflow(at(ladder('aa'), [0]))).toEqual({ rung: 1, cause: 'overflow' })
    expect(afterOverflow(at(rungs, [0], { escalations: 1, maxEscalations: 1 }))).toMatchObject({ rung: null })
  })
})

describe('afterFault', () => {
  const failover = (progress: Progress, retryAfterMs: number | null = null) => {
    const next = afterFault(progress, retryAfterMs, 5)
    return next.rung === null ? next.because : [next.rung, next.cause]
  }

  it('tries another provider above, then below, then its own provider above, then once more after the wait', () => {
    const rungs = ladder('baab')
    expect(failover(at(rungs, [1]))).toEqual([3, 'failover'])
    expect(failover(at(rungs, [3, 1]))).toEqual([0, 'failover'])
    expect(failover(at(rungs, [3, 0, 1]))).toEqual([2, 'failover'])
    expect(failover(at(rungs, [3, 0, 2, 1]), 5000)).toEqual([1, 'retry'])
    expect(failover(at(rungs, [3, 0, 2, 1], { retries: 1 }), 5000)).toBe('no_rung')
    expect(failover(at(rungs, [3, 0, 2, 1]), 5001)).toBe('no_rung')
    expect(failover(at(rungs, [3, 0, 2, 1]), null)).toBe('no_rung')
  })

  it('passes over open breakers, ineligible rungs, and what lies below the floor', () => {
    const rungs = ladder('babb', [{}, {}, { callable: false }, { eligible: false }])
    expect(failover(at(rungs, [1]))).toEqual([0, 'failover'])
    expect(failover(at(rungs, [1], { floor: 1 }))).toBe('no_rung')
    expect(failover(at(rungs, [1], { maxAttempts: 1 }))).toBe('max_attempts')
  })

  it('goes to the nearest of the lower rungs', () => {
    expect(failover(at(ladder('bba'), [2]))).toEqual([1, 'failover'])
  })
})

describe('the way through a ladder', () => {
  const walk = fc.integer({ min: 3, max: 8 }).chain(size =>
    fc.record({
      rungs: fc.array(
        fc.record({
          provider: fc.constantFrom('a', 'b', 'c'),
          eligible: fc.constantFrom(true, true, false),
          maxInputTokens: fc.option(fc.nat(3), { nil: null }),
          callable: fc.constantFrom(true, true, false),
        }),
        { minLength: size, maxLength: size },
      ),
      start: fc.nat(size - 1),
      floor: fc.oneof(fc.constant(0), fc.nat(size - 1)),
      ceiling: fc.oneof(fc.constant(size - 1), fc.nat(size - 1)),
      maxEscalations: fc.constantFrom(1, 2, 7),
      maxAttempts: fc.constantFrom(2, 4, 8),
      events: fc.array(fc.constantFrom('gate', 'overflow', 'fault', 'fault-now'), { minLength: 20, maxLength: 20 }),
    }),
  )

  it('ends, never repeats a rung but for one retry, and keeps to its limits and bounds', () => {
    let steps = 0
    fc.assert(
      fc.property(walk, ({ rungs, start, events, ...limits }) => {
        const floor = Math.min(limits.floor, start)
        const ceiling = Math.max(limits.ceiling, start)
        const states = rungs.map((rung, i) => ({ ...rung, rung: i, eligible: rung.eligible || i === start }))
        const tried = [start]
        let escalations = 0
        let retries = 0
        for (const event of events) {
          const progress = { ...limits, ladder: states, tried: [...tried], escalations, retries, floor, ceiling }
          const next =
            event === 'gate'
              ? afterGateFail(progress)
              : event === 'overflow'
                ? afterOverflow(progress)
                : afterFault(progress, event === 'fault' ? null : 1000, 5)
          if (next.rung === null) break
          steps++
          expect(states[next.rung]?.eligible).toBe(true)
          expect(next.rung).toBeGreaterThanOrEqual(floor)
          expect(next.rung).toBeLessThanOrEqual(ceiling)
          if (next.cause === 'retry') {
            expect(next.rung).toBe(tried.at(-1))
            retries++
          } else expect(tried).not.toContain(next.rung)
          if (next.cause === 'escalation') {
            const from = tried.at(-1)!
            const between = states.filter(one => one.rung > from && one.rung < next.rung!)
            expect(next.rung).toBeGreaterThan(from)
            expect(between.every(one => !one.eligible || tried.includes(one.rung))).toBe(true)
          }
          if (next.cause === 'failover') expect(states[next.rung]?.callable).toBe(true)
          if (next.cause === 'escalation' || next.cause === 'overflow') escalations++
          tried.push(next.rung)
        }
        expect(tried.length).toBeLessThanOrEqual(Math.max(1, limits.maxAttempts))
        expect(retries).toBeLessThanOrEqual(1)
        expect(escalations).toBeLessThanOrEqual(limits.maxEscalations)
        expect(new Set(tried).size).toBe(tried.length - retries)
      }),
      { numRuns: 2000 },
    )
    expect(steps).toBeGreaterThan(1000)
  })
})

describe('bestAttempt', () => {
  const made = (...rows: [rung: number, score: number | null, hasOutput?: boolean][]) =>
    bestAttempt(rows.map(([rung, score, hasOutput = true]) => ({ rung, score, hasOutput })))

  it('takes the highest score, then the highest rung, then the latest', () => {
    expect(made([0, 0.5], [1, 0])).toBe(0)
    expect(made([0, 0.5], [1, 0.5])).toBe(1)
    expect(made([1, 0.5], [0, 0.5])).toBe(0)
    expect(made([0, 0.5], [0, 0.5])).toBe(1)
    expect(made([0, null], [1, 0], [0, 0])).toBe(1)
    expect(made([2, 0.9, false], [0, null])).toBe(1)
    expect(made([0, 1, false])).toBe(-1)
    expect(made()).toBe(-1)
  })
})
