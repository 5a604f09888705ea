import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decide } from './run-gates.ts'

const unit = fc.integer({ min: 0, max: 100 }).map(n => n / 100)
const said = fc.record({ hardFail: fc.boolean(), failClosedAbstain: fc.boolean(), score: fc.option(unit) })
const threshold = fc.option(unit)

describe('decide', () => {
  it.each([
    [{ score: 0.9 }, { threshold: 1 }, 'fail', 'below_threshold'],
    [{ score: 1 }, { threshold: 1 }, 'pass', 'passed'],
    [{ score: 0.1 }, { threshold: null }, 'pass', 'passed'],
    [{ score: null }, { threshold: 1 }, 'pass', 'passed'],
    [{ score: 0, hardFail: true }, { threshold: 0 }, 'fail', 'gate_failed'],
    [{ score: 0, hardFail: true }, { threshold: 0, serveFailedAboveThreshold: true }, 'pass', 'served_above_threshold'],
    [{ score: 0.6, hardFail: true }, { threshold: 0.7, serveFailedAboveThreshold: true }, 'fail', 'gate_failed'],
    [{ score: 0.6, hardFail: true }, { threshold: null, serveFailedAboveThreshold: true }, 'fail', 'gate_failed'],
    [
      { score: 1, failClosedAbstain: true },
      { threshold: 0, serveFailedAboveThreshold: true },
      'fail',
      'gate_abstained',
    ],
  ] as const)('%j with %j: %s, %s', (outcome, options, verdict, because) => {
    const full = { hardFail: false, failClosedAbstain: false, ...outcome }
    expect(decide(full, { serveFailedAboveThreshold: false, ...options })).toEqual({ verdict, because })
  })

  it('never serves a hard fail unless the knob is set, whatever the score', () => {
    fc.assert(
      fc.property(said, threshold, (outcome, t) => {
        fc.pre(outcome.hardFail || outcome.failClosedAbstain)
        expect(decide(outcome, { threshold: t, serveFailedAboveThreshold: false }).verdict).toBe('fail')
      }),
    )
  })

  it('never serves a fail-closed abstention, knob or not', () => {
    fc.assert(
      fc.property(said, threshold, fc.boolean(), (outcome, t, serveFailedAboveThreshold) => {
        expect(
          decide({ ...outcome, failClosedAbstain: true }, { threshold: t, serveFailedAboveThreshold }).verdict,
        ).toBe('fail')
      }),
    )
  })

  it('passes no less with a lower threshold or a higher score', () => {
    fc.assert(
      fc.property(said, unit, unit, unit, fc.boolean(), (outcome, t, lower, higher, serveFailedAboveThreshold) => {
        const at = (score: number | null, limit: number) =>
          decide({ ...outcome, score }, { threshold: limit, serveFailedAboveThreshold }).verdict
        if (at(outcome.score, t) === 'pass') {
          expect(at(outcome.score, Math.min(t, lower))).toBe('pass')
          if (outcome.score !== null) expect(at(Math.max(outcome.score, higher), t)).toBe('pass')
        }
      }),
    )
  })
})
