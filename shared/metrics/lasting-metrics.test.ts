import { expect, it } from 'vitest'
import { lastingMetrics } from '../../runtime/host/worker.ts'

it('counts on where an earlier part of the same name had got to', async () => {
  const metrics = lastingMetrics()
  for (const value of [2, 3]) metrics.counter('calls_total', 'Calls.').add(value)
  for (const value of [7, 8]) metrics.gauge('open', 'Open.').set(value)
  for (const value of [0.5, 20]) metrics.histogram('took_seconds', 'Took.', [1]).observe(value)
  const page = metrics.text()
  expect(page).toContain('calls_total 5\n')
  expect(page).toContain('open 8\n')
  expect(page).toContain('took_seconds_bucket{le="1"} 1\n')
  expect(page).toContain('took_seconds_count 2\n')
})

it('does not let one name be two kinds', () => {
  const metrics = lastingMetrics()
  metrics.counter('one', 'One.')
  expect(() => metrics.gauge('one', 'One.')).toThrow('registered twice')
})
