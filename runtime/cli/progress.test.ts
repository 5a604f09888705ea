import { expect, it } from 'vitest'
import { style } from '../../shared/cli/style.ts'
import type { RunEventData } from '../../shared/wire/runtime/journal.ts'
import { progress } from './progress.ts'

const event = (kind: RunEventData['kind'], seconds: number, more: Partial<RunEventData> = {}): RunEventData => ({
  seq: 1,
  stepId: 'timer-1-1',
  runId: 'r',
  attempt: 1,
  at: new Date(seconds * 1000).toISOString(),
  meta: {},
  hash: '0'.repeat(64),
  kind,
  payload: {},
  ...more,
})

it('says how long a timer took, though it did no work', () => {
  const shown = progress()
  shown.of(event('step_started', 10, { meta: { name: 'wait' } }))
  expect(shown.of(event('step_completed', 14, { meta: { durationMs: 0 } }))).toEqual([
    'ok    timer-1-1      wait  4.0 s  0 USD',
  ])
})

it('marks a line on a terminal, and lets no text of a run do so', () => {
  const shown = progress(style(true))
  const [line] = shown.of(event('step_failed', 1, { payload: { code: 'tool_failed', error: 'no\u001b[2J\nmore' } }))
  expect(line).toBe('\u001b[31mFAIL\u001b[39m  timer-1-1  tool_failed: no[2J')
})

it('says where the programs of a sandbox have been', () => {
  const place = { port: 443, calls: 2, refused: 0, sentBytes: 900, receivedBytes: 12_000 }
  const egress = [
    { ...place, host: 'pypi.org', address: '151.101.0.223' },
    { ...place, host: 'evil.example', calls: 0, refused: 3, sentBytes: 0, receivedBytes: 0 },
  ]
  const [, ...lines] = progress().of(event('step_completed', 1, { meta: { egress } }))
  expect(lines).toEqual([
    '      reached pypi.org:443 (151.101.0.223): 2 calls, 900 bytes out, 12000 in',
    '      was refused evil.example:443, 3 times',
  ])
})

it('says which calls a cost leaves out, since their model has no price', () => {
  const shown = progress()
  const meta = { durationMs: 5, name: 'openai-compatible/m', costUsd: 0, unpriced: true }
  expect(shown.of(event('step_completed', 1, { stepId: 'model-1', meta }))).toEqual([
    'ok    model-1  5 ms  0 USD, 1 call without a price',
  ])
  expect(shown.of(event('step_completed', 2, { stepId: 'model-2', meta }))[0]).toMatch(
    /0 USD, 2 calls without a price$/,
  )
})
