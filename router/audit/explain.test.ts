import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { explanation } from '../../shared/wire/router/explain.ts'
import { type Attempt, causes, errorClasses, overrides, servedFrom } from '../../shared/wire/router/trace.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { explain } from './explain.ts'

const base = sampleTrace()

const attempt = fc
  .record({
    cause: fc.constantFrom(...causes),
    error_class: fc.option(fc.constantFrom(...errorClasses), { nil: undefined }),
    verdict: fc.constantFrom('pass', 'fail') as fc.Arbitrary<Attempt['verdict']>,
  })
  .map(
    ({ error_class, ...one }): Attempt => ({
      ...base.attempts[0]!,
      ...one,
      ...(error_class !== undefined && { error_class, verdict: 'error' }),
    }),
  )

describe('explain', () => {
  it('has a sentence for every decision there can be, and one step for each attempt', () => {
    fc.assert(
      fc.property(
        fc.array(attempt, { maxLength: 5 }),
        fc.uniqueArray(fc.constantFrom(...overrides)),
        fc.constantFrom(...servedFrom.options),
        fc.constantFrom('observe', 'enforce'),
        fc.option(fc.constant('a/model')),
        (attempts, applied, from, mode, served_model) => {
          const explained = explain({
            ...base,
            mode: mode as 'observe' | 'enforce',
            attempts,
            policy: { ...base.policy, overrides: applied },
            final: { ...base.final, served_from: from, served_model },
          })
          expect(explanation.safeParse(explained).success).toBe(true)
          const text = JSON.stringify(explained)
          expect(text).not.toMatch(/undefined|NaN|\[object/)
          if (mode === 'enforce') {
            expect(explained.steps.filter(({ step }) => step.startsWith('attempt'))).toHaveLength(attempts.length)
          }
          for (const { decision, because } of explained.steps)
            expect(decision.length * because.length).toBeGreaterThan(0)
        },
      ),
    )
  })
})
