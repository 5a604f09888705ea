import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LANE_PX, lanesOf } from './lanes.ts'
import { spanOf, type TimelineStep } from './timeline.ts'

const step = (stepId: string, fromMs: number, toMs?: number, more: Partial<TimelineStep> = {}): TimelineStep => ({
  stepId,
  kind: 'tool',
  name: '',
  status: 'completed',
  attempt: 1,
  tokensIn: 0,
  tokensOut: 0,
  costUsd: 0,
  copied: false,
  replayed: false,
  pieces: [{ kind: 'ran', fromMs, ...(toMs !== undefined && { toMs }) }],
  ...more,
})

const lanes = (steps: TimelineStep[]) => lanesOf(steps, spanOf(steps, 1000))

describe('the lanes of a run', () => {
  it('has one for what came one after the other, and one for each of what went on at a time', () => {
    const parallel = [step('tool-1-1', 100, 400), step('tool-1-2', 100, 300), step('tool-1-3', 101, 500)]
    const { count, bars } = lanes([step('model-1', 0, 100), ...parallel, step('model-2', 500, 600)])
    expect(count).toBe(3)
    expect(Object.fromEntries(bars.map(({ stepId, lane }) => [stepId, lane]))).toEqual({
      'model-1': 0,
      'tool-1-1': 0,
      'tool-1-2': 1,
      'tool-1-3': 2,
      'model-2': 0,
    })
    const left = (id: string) => bars.find(({ stepId }) => stepId === id)!.x
    expect(left('tool-1-1')).toBe(left('tool-1-2'))
  })

  it('shows attempts, delays and waits of a step in its lane, and what a recovery used again as such', () => {
    const pieces: TimelineStep['pieces'] = [
      { kind: 'failed', fromMs: 0, toMs: 100 },
      { kind: 'delay', fromMs: 100, toMs: 300 },
      { kind: 'ran', fromMs: 300, toMs: 500 },
      { kind: 'wait', fromMs: 500, toMs: 1000 },
    ]
    const { bars } = lanes([step('a', 0, 1000, { pieces, replayed: true })])
    expect(bars.map(({ className, lane, replayed }) => [className, lane, replayed])).toEqual([
      ...[['c-failed', 0, true] as const, ['c-delay', 0, true] as const],
      ...[['c-tool', 0, true] as const, ['c-wait', 0, true] as const],
    ])
  })

  it('names what has room for words, and has no more bars than can be told apart', () => {
    const many = Array.from({ length: 5000 }, (_, i) => step(`tool-${i}-1`, i * 10, i * 10 + 9))
    const { bars, names, count } = lanes([...many, step('model-9', 50_000, 60_000, { kind: 'model', name: 'a/b' })])
    expect(count).toBe(1)
    expect(bars.length).toBeLessThan(1000)
    expect(names.map(({ words }) => words)).toEqual(['a/b'])
    expect(LANE_PX).toBeGreaterThanOrEqual(24)
  })

  it('never puts two at a time into one lane, and never uses a lane more than there were at a time', () => {
    const any = fc.record({ from: fc.nat(500), long: fc.nat(300), open: fc.boolean() })
    fc.assert(
      fc.property(fc.array(any, { maxLength: 40 }), all => {
        const steps = all.map(({ from, long, open }, i) => step(`s-${i}`, from, open ? undefined : from + long))
        const span = spanOf(steps, 1000)
        const { bars, count } = lanesOf(steps, span)
        const end = (one: TimelineStep) => one.pieces[0]!.toMs ?? span.toMs
        const most = Math.max(
          0,
          ...steps.map(one => {
            const at = one.pieces[0]!.fromMs
            // A step that took no time was there as well.
            return steps.filter(two => two === one || (two.pieces[0]!.fromMs <= at && end(two) > at)).length
          }),
        )
        expect(count).toBeLessThanOrEqual(most)
        const laneOf = new Map(bars.map(({ stepId, lane }) => [stepId, lane]))
        for (const one of steps) {
          for (const two of steps) {
            const [a, b] = [laneOf.get(one.stepId), laneOf.get(two.stepId)]
            if (one === two || a === undefined || a !== b) continue
            const apart = end(one) <= two.pieces[0]!.fromMs || end(two) <= one.pieces[0]!.fromMs
            expect(apart, `${one.stepId} and ${two.stepId}`).toBe(true)
          }
        }
      }),
      {
        examples: [
          [
            [
              { from: 5, long: 5, open: false },
              { from: 5, long: 0, open: false },
            ],
          ],
        ],
      },
    )
  })
})
