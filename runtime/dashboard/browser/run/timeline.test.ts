import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Step } from '../../../../shared/wire/runtime/run.ts'
import {
  BAR_WIDTH,
  barsOf,
  inputOf,
  marksOf,
  pausesOf,
  spanOf,
  stepDurationMs,
  type TimelineEvent,
  timelineOf,
  timelineOfSteps,
} from './timeline.ts'

const START = Date.parse('2026-01-02T03:04:05.000Z')
const event = (
  seq: number,
  kind: TimelineEvent['kind'],
  stepId: string,
  ms: number,
  more: Partial<TimelineEvent> = {},
) => ({
  seq,
  kind,
  stepId,
  at: new Date(START + ms).toISOString(),
  attempt: 1,
  payload: {},
  meta: {},
  hash: '',
  ...more,
})

describe('a timeline', () => {
  it('shows attempts, the delay between them and what a step cost', () => {
    const [step] = timelineOf([
      event(1, 'step_started', 'model-1', 0, { meta: { stepKind: 'model', name: 'a/b', inputHash: 'ff' } }),
      event(2, 'step_retrying', 'model-1', 100, { payload: { error: 'busy', code: 'overloaded' } }),
      event(3, 'step_started', 'model-1', 600, { attempt: 2 }),
      event(4, 'step_completed', 'model-1', 900, {
        attempt: 2,
        payload: { output: 'hi' },
        meta: { tokensIn: 3, tokensOut: 4, costUsd: 0.5, model: 'a/b' },
      }),
    ])
    expect(step).toMatchObject({
      status: 'completed',
      attempt: 2,
      tokensIn: 3,
      costUsd: 0.5,
      output: 'hi',
      inputHash: 'ff',
    })
    expect(step!.error).toBeUndefined()
    expect(step!.pieces.map(({ kind, fromMs, toMs }) => [kind, fromMs - START, toMs! - START])).toEqual([
      ['failed', 0, 100],
      ['delay', 100, 600],
      ['ran', 600, 900],
    ])
    expect([stepDurationMs(step!), marksOf(step!)]).toEqual([900, ['attempt 2']])
  })

  it('says what stands still because an attempt failed, why and for how long, and nothing of what goes on', () => {
    const nextAt = new Date(START + 8400).toISOString()
    const payload = { attempt: 6, of: 10, error: 'a could not be reached', code: 'unreachable', delayMs: 8000, nextAt }
    const events = [
      event(1, 'step_started', 'model-1', 0),
      event(2, 'step_retrying', 'model-1', 400, { payload: { ...payload, unbilled: true } }),
      event(3, 'step_started', 'tool-1', 0),
      event(4, 'step_retrying', 'tool-1', 100, { payload }),
    ]
    expect(pausesOf(events, START + 1000)).toEqual([
      'model-1 is tried again in 8 s. Attempt 6 of 10 failed: a could not be reached. Nothing of it is billed.',
      'tool-1 is tried again in 8 s. Attempt 6 of 10 failed: a could not be reached.',
    ])
    expect(pausesOf([...events, event(5, 'step_started', 'tool-1', 9000)], START + 9000)).toEqual([
      'model-1 is tried again now. Attempt 6 of 10 failed: a could not be reached. Nothing of it is billed.',
    ])
  })

  it('shows an attempt that a recovery makes in the place of one that was cut off as an attempt, and no delay', () => {
    const [step] = timelineOf([
      event(1, 'step_started', 'model-1', 0),
      event(2, 'step_retrying', 'model-1', 300, { payload: { error: 'the process is gone', code: 'interrupted' } }),
      event(3, 'step_completed', 'model-1', 900, { payload: { output: 'hi' } }),
    ])
    expect(step!.pieces.map(({ kind, fromMs, toMs }) => [kind, fromMs - START, toMs! - START])).toEqual([
      ['failed', 0, 300],
      ['ran', 300, 900],
    ])
  })

  it('shows a wait for a person that goes on to now, and parallel calls beside each other', () => {
    const steps = timelineOf([
      event(1, 'step_started', 'tool-1-1', 0),
      event(2, 'step_started', 'approval-1-2', 0),
      event(3, 'step_waiting', 'approval-1-2', 50),
      event(4, 'step_completed', 'tool-1-1', 400),
    ])
    const span = spanOf(steps, START + 800)
    expect(span).toEqual({ fromMs: START, toMs: START + 800 })
    expect(barsOf(steps[0]!, span)).toEqual([{ x: 0, width: 500, className: 'c-tool' }])
    expect(barsOf(steps[1]!, span).at(-1)).toEqual({ x: 62.5, width: 937.5, className: 'c-wait' })
    expect([steps[1]!.status, stepDurationMs(steps[1]!)]).toEqual(['waiting', undefined])
  })

  it('marks what a recovery used again and what a fork copied', () => {
    const [step] = timelineOf(
      [
        event(1, 'step_started', 'tool-1-1', 0, { meta: { copiedFrom: 'x' } }),
        event(2, 'step_completed', 'tool-1-1', 1),
      ],
      new Set(['tool-1-1']),
    )
    expect(marksOf(step!)).toEqual(['replayed', 'copied'])
  })

  it('finds what a call was given in the answer that asked for it', () => {
    const output = { text: '', toolCalls: [{ name: 'wait', arguments: { seconds: 1 } }, { name: 'other' }] }
    const events = [
      event(1, 'step_started', 'model-3', 0),
      event(2, 'step_completed', 'model-3', 1, { payload: { output } }),
    ]
    expect(inputOf('timer-3-1', events)).toEqual({ seconds: 1 })
    for (const stepId of ['timer-3-2', 'timer-3-3', 'timer-2-1', 'model-3', 'code-x-1']) {
      expect(inputOf(stepId, events)).toBeUndefined()
    }
  })

  it('keeps every bar inside its field, whatever came in whichever order', () => {
    const kinds = [
      'step_started',
      'step_completed',
      'step_failed',
      'step_retrying',
      'step_waiting',
      'confidence_evaluated',
    ] as const
    const some = fc.array(fc.record({ kind: fc.constantFrom(...kinds), step: fc.nat(4), ms: fc.nat(1_000_000) }), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(some, fc.nat(2_000_000), (list, now) => {
        const ordered = list.toSorted((a, b) => a.ms - b.ms)
        const steps = timelineOf(ordered.map(({ kind, step, ms }, i) => event(i + 1, kind, `s-${step}`, ms)))
        const span = spanOf(steps, START + now)
        for (const step of steps) {
          for (const { x, width } of barsOf(step, span)) {
            expect(x).toBeGreaterThanOrEqual(0)
            expect(width).toBeGreaterThan(0)
            expect(x + width).toBeLessThanOrEqual(BAR_WIDTH + 1e-6)
          }
        }
      }),
    )
  })

  it('says the same of the list of steps as far as that knows', () => {
    const step: Step = {
      stepId: 'model-1',
      kind: 'model',
      name: 'a/b',
      status: 'failed',
      attempt: 3,
      replayed: true,
      copied: false,
      startedAt: '2026-01-02T03:04:05.000Z',
      finishedAt: '2026-01-02T03:04:06.000Z',
      tokensIn: 1,
      tokensOut: 2,
      costUsd: 0,
    }
    const [shown] = timelineOfSteps([step])
    expect([marksOf(shown!), stepDurationMs(shown!), shown!.pieces[0]!.kind]).toEqual([
      ['failed', 'attempt 3', 'replayed'],
      1000,
      'failed',
    ])
  })
})
