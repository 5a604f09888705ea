import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import type { Attempt } from '../../shared/wire/router/trace.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { type TraceFamily, traceMetrics, traceUpdates } from './trace-metrics.ts'

const base = sampleTrace().attempts[0]!

const attempt = fc.record({
  rung: fc.nat(3),
  provider: fc.constantFrom('a', 'b'),
  cost: fc.option(fc.integer({ min: 0, max: 1e9 }).map(nano => nano / 1e9)),
  cause: fc.constantFrom('start', 'escalation', 'failover', 'retry', 'overflow') as fc.Arbitrary<Attempt['cause']>,
  usage_source: fc.constantFrom('provider', 'estimated', 'none') as fc.Arbitrary<Attempt['usage_source']>,
  output: fc.nat(1000),
})

const record = fc.array(attempt, { maxLength: 5 }).map(attempts => {
  const trace = sampleTrace()
  const made = attempts.map(({ output, ...one }) => ({ ...base, ...one, tokens: { ...base.tokens, output } }))
  return { ...trace, attempts: made }
})

const sum = (updates: ReturnType<typeof traceUpdates>, family: TraceFamily) =>
  updates.filter(one => one.family === family).reduce((total, { value }) => total + value, 0)

describe('what a record says to the metrics', () => {
  it('counts each request once and each attempt once, whatever happened', () => {
    fc.assert(
      fc.property(record, one => {
        const updates = traceUpdates(one)
        expect(sum(updates, 'router_requests_total')).toBe(1)
        expect(sum(updates, 'router_served_total')).toBe(1)
        expect(sum(updates, 'router_attempts_total')).toBe(one.attempts.length)
        expect(sum(updates, 'router_unpriced_total')).toBe(one.attempts.filter(({ cost }) => cost === null).length)
        expect(sum(updates, 'router_tokens_total')).toBe(
          one.attempts.flatMap(({ tokens }) => Object.values(tokens)).reduce((total, count) => total + count, 0),
        )
        expect(sum(updates, 'router_usage_estimated_total')).toBe(
          one.attempts.filter(({ usage_source }) => usage_source === 'estimated').length,
        )
        const after = one.attempts.slice(1).filter(({ cause }) => cause === 'failover' || cause === 'retry')
        expect(sum(updates, 'router_failovers_total')).toBe(after.length)
        for (const { value } of updates) expect(Number.isFinite(value)).toBe(true)
      }),
    )
  })

  it('blames a failover on the provider that gave no answer', () => {
    const trace = sampleTrace()
    const attempts: Attempt[] = [
      { ...base, provider: 'down', verdict: 'error', error_class: 'upstream_5xx' },
      { ...base, provider: 'up', cause: 'failover' },
    ]
    expect(
      traceUpdates({ ...trace, attempts }).find(({ family }) => family === 'router_failovers_total'),
    ).toMatchObject({
      value: 1,
      labels: { provider: 'down', error_class: 'upstream_5xx' },
    })
  })

  it('adds up savings that go up and down, to the nano', () => {
    const metrics = createMetrics()
    const count = traceMetrics(metrics)
    const trace = sampleTrace()
    for (const savings_usd of [0.1, 0.2, -0.05, null]) count({ ...trace, final: { ...trace.final, savings_usd } })
    expect(metrics.text()).toContain(`router_savings_usd{tenant="${trace.tenant_id}"} 0.25\n`)
  })

  it('calls only what cannot fall a total', () => {
    const metrics = createMetrics()
    traceMetrics(metrics)
    const families = [...metrics.text().matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => [name, type])
    expect(families.filter(([name, type]) => name?.endsWith('_total') !== (type === 'counter'))).toEqual([])
  })
})
