import { expect, it } from 'vitest'
import type { StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { requestText } from './request-text.ts'

const step: StepRequest['step'] = {
  stepId: 'model-2',
  kind: 'model',
  name: 'auto',
  model: 'test/m',
  status: 'completed',
  attempt: 2,
  startedAt: '2026-01-02T03:04:05.678Z',
  durationMs: 1200,
  tokensIn: 400,
  tokensOut: 7,
  costUsd: 0.0025,
  replayed: false,
  copied: false,
}

it('shows a conversation with its calls, what was cached, what is left out and what failed before', () => {
  const told: StepRequest = {
    step,
    cacheReadTokens: 390,
    failures: [
      { attempt: 1, at: step.startedAt, error: 'try later', code: 'overloaded', tokensIn: 0, tokensOut: 0, costUsd: 0 },
    ],
    request: {
      exact: true,
      system: { text: 'Be short.', cached: 'whole' },
      tools: [{ name: 'wait', description: 'waits', parameters: {} }],
      messageCount: 5,
      firstMessage: 2,
      messages: [
        { role: 'user', text: 'Hello', omitted: 1000, cached: 'part' },
        { role: 'assistant', text: '', toolCalls: [{ id: 'c', name: 'wait', arguments: { n: 1 } }], stepId: 'model-1' },
        {
          role: 'tool',
          results: [{ callId: 'c', name: 'wait', content: 'no', failed: true, stepId: 'timer-1-1' }],
        },
      ],
      maxOutputTokens: 10,
    },
    answer: { text: 'The end.', toolCalls: [], stop: 'end' },
  }
  expect(
    requestText(told).replaceAll('\u00a0', ' '),
  ).toBe(`model-2  test/m  completed  1.20 s  400 tokens in (390 from the cache), 7 out  $0.0025
attempt 1 failed  overloaded  try later
tools: wait

── system (cached)
Be short.

(2 messages before: --before 2)

── user (cached in part)
Hello
[… 1,000 more characters …]

── assistant (model-1)
→ wait {"n":1}

── failed: wait (timer-1-1)
no

── answer (end)
The end.`)
})

it('moves no cursor, turns no line around, and says why there is nothing', () => {
  const failures: StepRequest['failures'] = []
  const answer = { text: 'a\u001b[2Jb\u202ec\u2066d', toolCalls: [] }
  expect(requestText({ step, failures, answer }).split('\n').at(-1)).toBe('a[2Jbcd')
  expect(requestText({ step, failures, without: 'not_stored' })).toContain('privacy.storePrompts is false')
})
