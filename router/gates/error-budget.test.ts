import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import type { ErrorBudget } from './common-keys.ts'
import {
  type BudgetState,
  beginProbe,
  countRun,
  createErrorBudgets,
  endProbe,
  freshBudget,
  isProbeDue,
} from './error-budgets.ts'
import { probeGates } from './gate-probes.ts'
import { fakeGate, never } from './testing/fake-gate.ts'
import { subjectOf } from './testing/subject.ts'

const standard: ErrorBudget = { window: 50, minRuns: 20, maxError: 0.25, probeAfterS: 60, probes: 3 }
const budgets: fc.Arbitrary<ErrorBudget> = fc.record({
  window: fc.integer({ min: 1, max: 12 }),
  minRuns: fc.integer({ min: 1, max: 15 }),
  maxError: fc.constantFrom(0, 0.25, 0.5, 1),
  probeAfterS: fc.integer({ min: 1, max: 5 }),
  probes: fc.integer({ min: 1, max: 4 }),
})

type Step = { do: 'run' | 'probe'; how: 'ran' | 'error' | 'cancelled' } | { do: 'wait'; s: number }
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constantFrom('run' as const, 'probe' as const),
      how: fc.constantFrom('ran' as const, 'error' as const, 'cancelled' as const),
    }),
    fc.record({ do: fc.constant('wait' as const), s: fc.integer({ min: 1, max: 6 }) }),
  ),
  { maxLength: 80 },
)

describe('the error budget', () => {
  it('follows its definition step by step', () => {
    fc.assert(
      fc.property(budgets, steps, (budget, script) => {
        let state: BudgetState = freshBudget
        let now = 0
        // The model keeps the whole history and reads the rule off it.
        let history: boolean[] = []
        let off: { probeAt: number; good: number } | undefined
        for (const step of script) {
          if (step.do === 'wait') now += step.s * 1000
          else if (step.do === 'run') {
            if (step.how === 'cancelled') continue
            state = countRun(state, budget, step.how === 'error', now)
            if (off === undefined) {
              history.push(step.how === 'error')
              const window = history.slice(-budget.window)
              const errors = window.filter(Boolean).length
              if (window.length >= Math.min(budget.minRuns, budget.window) && errors > budget.maxError * window.length)
                off = { probeAt: now + budget.probeAfterS * 1000, good: 0 }
            }
          } else {
            const isDue = off !== undefined && now >= off.probeAt
            expect(isProbeDue(state, now)).toBe(isDue)
            if (!isDue || off === undefined) continue
            state = beginProbe(state)
            expect(isProbeDue(state, now)).toBe(false)
            state = endProbe(state, budget, step.how, now)
            if (step.how === 'error') off = { probeAt: now + budget.probeAfterS * 1000, good: 0 }
            if (step.how === 'ran') off.good += 1
            if (off.good >= budget.probes) {
              off = undefined
              history = []
            }
          }
          expect(state.phase).toBe(off === undefined ? 'active' : 'disabled')
        }
      }),
      { numRuns: 500 },
    )
  })

  it('accepts exactly the allowed share, and needs its runs first', () => {
    const phaseAfter = (errors: number, good: number) => {
      let state: BudgetState = freshBudget
      for (let i = 0; i < good; i += 1) state = countRun(state, standard, false, 0)
      for (let i = 0; i < errors; i += 1) state = countRun(state, standard, true, 0)
      return state.phase
    }
    expect([phaseAfter(5, 15), phaseAfter(6, 14), phaseAfter(19, 0), phaseAfter(20, 0)]).toEqual([
      'active',
      'disabled',
      'active',
      'disabled',
    ])
  })
})

describe('the budgets of a process', () => {
  const subject = subjectOf([{ text: 'x' }])
  const runs = (outcome: 'ran' | 'error' | 'cancelled' | 'disabled', n: number) =>
    Array.from({ length: n }, () => ({ gateId: 'g', outcome }))

  function made() {
    const clock = manualClock(new Date('2026-01-01T00:00:00Z'))
    const onChange = vi.fn()
    const all = createErrorBudgets({ budgetOf: id => (id === 'g' ? standard : undefined), clock, onChange })
    return { clock, onChange, all }
  }

  it('keep tenants apart and forget gates that are not in the config', () => {
    const { all, onChange } = made()
    all.record('a', runs('error', 20))
    all.record('a', [{ gateId: 'other', outcome: 'error' }])
    all.record('b', runs('ran', 2))
    expect([all.isDisabled('a', 'g'), all.isDisabled('b', 'g'), all.isDisabled('a', 'other')]).toEqual([
      true,
      false,
      false,
    ])
    expect(onChange.mock.calls).toEqual([[{ tenantId: 'a', gateId: 'g', state: 'disabled' }]])
    expect(all.snapshot()).toEqual([
      { tenantId: 'a', gateId: 'g', state: 'disabled', runs: 0, errors: 0, since: new Date('2026-01-01T00:00:00Z') },
      { tenantId: 'b', gateId: 'g', state: 'active', runs: 2, errors: 0, since: null },
    ])
    expect(all.snapshot('b')).toHaveLength(1)
  })

  it('count neither cancelled nor left out runs', () => {
    const { all } = made()
    all.record('a', [...runs('cancelled', 30), ...runs('disabled', 30), ...runs('error', 19)])
    expect(all.isDisabled('a', 'g')).toBe(false)
  })

  it('recover by probes, one at a time, off the path', async () => {
    const { all, clock, onChange } = made()
    all.record('a', runs('error', 20))
    let works = false
    let open = 0
    const gate = fakeGate({
      id: 'g',
      costNano: 2,
      run: async () => {
        expect(++open).toBe(1)
        await new Promise(resolve => setImmediate(resolve))
        open -= 1
        return works ? { verdict: 'fail' } : { verdict: 'abstain', error: true }
      },
    })
    const probe = () => probeGates({ gates: [gate], subject, tenantId: 'a', budgets: all, signal: never })
    expect(await probe()).toBe(0)
    clock.advance(60_000)
    expect((await Promise.all([probe(), probe(), probe()])).sort()).toEqual([0, 0, 2])
    works = true
    expect(await probe()).toBe(0)
    clock.advance(60_000)
    expect([await probe(), await probe(), all.isDisabled('a', 'g')]).toEqual([2, 2, true])
    // An honest fail is a good probe: the gate works.
    expect([await probe(), all.isDisabled('a', 'g')]).toEqual([2, false])
    expect(onChange).toHaveBeenLastCalledWith({ tenantId: 'a', gateId: 'g', state: 'active' })
    expect(await probe()).toBe(0)
  })

  it('give the turn to another probe when one was cancelled', async () => {
    const { all, clock } = made()
    all.record('a', runs('error', 20))
    clock.advance(60_000)
    await probeGates({
      gates: [fakeGate({ id: 'g', run: () => new Promise(() => undefined) })],
      subject,
      tenantId: 'a',
      budgets: all,
      signal: AbortSignal.abort(),
    })
    expect([all.claimProbe('a', 'g'), all.claimProbe('a', 'g')]).toEqual([true, false])
  })
})
