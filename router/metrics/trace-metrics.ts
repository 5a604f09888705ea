import { type Labels, type Metrics, OVERHEAD_BUCKETS } from '../../shared/metrics/metrics.ts'
import { fromUsd, toUsd } from '../../shared/money/money.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { type TraceFamily, traceUpdates } from './trace-updates.ts'

/** Registers what finished decisions feed; gives the function that counts one. */
export function traceMetrics(metrics: Metrics): (record: UnsealedTrace) => void {
  const counter = (name: TraceFamily, help: string) => {
    const made = metrics.counter(name, help)
    return (value: number, labels: Labels) => made.add(value, labels)
  }
  const histogram = (name: TraceFamily, help: string, buckets?: readonly number[]) => {
    const made = metrics.histogram(name, help, buckets)
    return (value: number, labels: Labels) => made.observe(value, labels)
  }
  const feed: Record<TraceFamily, (value: number, labels: Labels) => void> = {
    router_requests_total: counter('router_requests_total', 'Traced requests.'),
    router_served_total: counter('router_served_total', 'Requests by what was served.'),
    router_served_rung_total: counter('router_served_rung_total', 'Answers served, by rung and model.'),
    router_attempts_total: counter('router_attempts_total', 'Calls to models.'),
    router_escalations_total: counter('router_escalations_total', 'Climbs to a higher rung.'),
    router_failovers_total: counter(
      'router_failovers_total',
      'Calls made because another gave no answer: the one that did not.',
    ),
    router_gate_verdicts_total: counter('router_gate_verdicts_total', 'Verdicts of gates.'),
    router_cost_usd_total: counter('router_cost_usd_total', 'US dollars spent on models and gates.'),
    router_gate_cost_usd_total: counter('router_gate_cost_usd_total', 'US dollars of it spent on gates.'),
    router_baseline_usd_total: counter('router_baseline_usd_total', 'US dollars that the top rung would have cost.'),
    router_savings_usd: summed(metrics),
    router_tokens_total: counter('router_tokens_total', 'Tokens by class.'),
    router_unpriced_total: counter('router_unpriced_total', 'Calls whose price is unknown.'),
    router_usage_estimated_total: counter('router_usage_estimated_total', 'Calls whose tokens were estimated.'),
    router_request_duration_seconds: histogram('router_request_duration_seconds', 'From the request to its last byte.'),
    router_upstream_duration_seconds: histogram('router_upstream_duration_seconds', 'One call to a provider.'),
    router_gate_duration_seconds: histogram('router_gate_duration_seconds', 'One run of a gate.'),
    router_overhead_seconds: histogram('router_overhead_seconds', 'Time of the router itself.', OVERHEAD_BUCKETS),
    router_ttfb_seconds: histogram('router_ttfb_seconds', 'To the first byte of the served answer.'),
  }
  return record => {
    for (const { family, value, labels } of traceUpdates(record)) feed[family](value, labels)
  }
}

/** Savings may fall, so they are a gauge; summed in whole nano-USD. */
function summed(metrics: Metrics) {
  const gauge = metrics.gauge('router_savings_usd', 'US dollars saved against the top rung; may fall.')
  const sums = new Map<string, number>()
  return (value: number, labels: Labels) => {
    const tenant = String(labels.tenant)
    const sum = (sums.get(tenant) ?? 0) + fromUsd(value)
    sums.set(tenant, sum)
    gauge.set(toUsd(sum), labels)
  }
}
