import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { TimelineStep } from './browser/run/timeline.ts'
import { alignSteps } from './pages/compare.ts'

const step = (stepId: string): TimelineStep => ({
  stepId,
  kind: stepId.split('-')[0]!,
  name: 'n',
  status: 'completed',
  attempt: 1,
  pieces: [],
  tokensIn: 0,
  tokensOut: 0,
  costUsd: 0,
  copied: false,
  replayed: false,
})

it('puts steps of one place side by side, and the others in their place', () => {
  const left = ['model-1', 'tool-1-1', 'model-2'].map(step)
  const right = ['model-1', 'tool-1-1', 'tool-1-2', 'model-2', 'model-3'].map(step)
  expect(alignSteps(left, right).map(one => [one.left?.stepId, one.right?.stepId])).toEqual([
    ['model-1', 'model-1'],
    ['tool-1-1', 'tool-1-1'],
    [undefined, 'tool-1-2'],
    ['model-2', 'model-2'],
    [undefined, 'model-3'],
  ])
})

it('loses no step of either run, keeps their order, and pairs only what is alike', () => {
  const ids = fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 10 })
  const steps = ids.map(list => list.map(n => step(`model-${n}`)))
  fc.assert(
    fc.property(steps, steps, (left, right) => {
      const pairs = alignSteps(left, right)
      expect(pairs.flatMap(one => (one.left ? [one.left] : []))).toEqual(left)
      expect(pairs.flatMap(one => (one.right ? [one.right] : []))).toEqual(right)
      for (const { left: a, right: b } of pairs) if (a && b) expect(a.stepId).toBe(b.stepId)
    }),
  )
})

it('holds the steps of two long runs against each other without a table of all pairs', () => {
  const many = Array.from({ length: 2000 }, (_, i) => step(`model-${i}`))
  const pairs = alignSteps(many, many.slice(1))
  expect(pairs.filter(({ left, right }) => left && right)).toHaveLength(1999)
})
