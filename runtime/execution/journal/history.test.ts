import { expect, it } from 'vitest'
import { genesis, sealEvent } from './event.ts'
import { readHistory } from './history.ts'

it('knows after a takeover which attempts were not billed', () => {
  const at = new Date('2026-01-02T03:04:05.000Z')
  const nextAt = at.toISOString()
  const payload = { of: 10, error: 'busy', code: 'overloaded', delayMs: 1, nextAt }
  let head = genesis('run')
  const events = [true, undefined, true].flatMap((unbilled, n) =>
    (['step_started', 'step_retrying'] as const).map(kind => {
      const retried = { ...payload, attempt: n + 1, ...(unbilled && { unbilled }) }
      const draft = { kind, stepId: 'model-1', attempt: n + 1, payload: kind === 'step_started' ? {} : retried }
      const { entry } = sealEvent(head, 'run', draft, at)
      head = entry
      return entry
    }),
  )
  const { unbilled, steps } = readHistory(events)
  expect([...unbilled]).toEqual([['model-1', 2]])
  expect(steps.get('model-1')).toMatchObject({ is: 'retrying', attempt: 3 })
})
