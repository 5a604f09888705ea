import { type Labels, type Metrics, OVERHEAD_BUCKETS } from '../../shared/metrics/metrics.ts'
import { fromUsd, toUsd } from '../../shared/money/money.ts'
import type { Attempt, UnsealedTrace } from '../../shared/wire/router/trace.ts'

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

/** The families that a finished decision feeds (docs/spec/router.md §2.7). */
export type TraceFamily =
  | 'router_requests_total'
  | 'router_served_total'
  | 'router_served_rung_total'
  | 'router_attempts_total'
  | 'router_escalations_total'
  | 'router_failovers_total'
  | 'router_gate_verdicts_total'
  | 'router_cost_usd_total'
  | 'router_gate_cost_usd_total'
  | 'router_baseline_usd_total'
  | 'router_savings_usd'
  | 'router_tokens_total'
  | 'router_unpriced_total'
  | 'router_usage_estimated_total'
  | 'router_request_duration_seconds'
  | 'router_upstream_duration_seconds'
  | 'router_gate_duration_seconds'
  | 'router_overhead_seconds'
  | 'router_ttfb_seconds'

interface Update {
  family: TraceFamily
  value: number
  labels: Readonly<Record<string, string | number>>
}

/** Everything that one record says to the metrics. */
export function traceUpdates(record: UnsealedTrace): Update[] {
  const { mode, request, attempts, final, tenant_id: tenant } = record
  const updates: Update[] = []
  const add = (family: TraceFamily, value: number, labels: Update['labels']) =>
    void updates.push({ family, value, labels })

  add('router_requests_total', 1, { api: request.api, mode, status_class: `${Math.floor(final.status / 100)}xx` })
  add('router_request_duration_seconds', final.wall_ms / 1000, { api: request.api, mode })
  add('router_overhead_seconds', final.overhead_ms / 1000, { mode })
  add('router_served_total', 1, { served_from: final.served_from })
  if (final.served_model !== null && final.served_rung >= 0) {
    add('router_served_rung_total', 1, { rung: final.served_rung, model: final.served_model })
  }
  if (final.escalations > 0) add('router_escalations_total', final.escalations, { route: record.route_ix ?? 'none' })
  attempts.forEach((one, at) => {
    ofAttempt(one, add)
    const before = attempts[at - 1]
    if (before !== undefined && (one.cause === 'failover' || one.cause === 'retry')) {
      add('router_failovers_total', 1, { provider: before.provider, error_class: before.error_class ?? 'none' })
    }
  })
  const first = attempts.find(one => one.rung === final.served_rung && one.ttfb_ms !== null)
  if (first?.ttfb_ms != null) add('router_ttfb_seconds', first.ttfb_ms / 1000, { mode })
  if (final.total_cost_usd !== null) add('router_cost_usd_total', final.total_cost_usd, { tenant })
  if (final.gate_cost_usd > 0) add('router_gate_cost_usd_total', final.gate_cost_usd, { tenant })
  if (final.baseline_same_token_usd !== null) {
    add('router_baseline_usd_total', final.baseline_same_token_usd, { tenant, basis: 'same_token' })
  }
  if (final.baseline_calibrated_usd !== undefined) {
    add('router_baseline_usd_total', final.baseline_calibrated_usd, { tenant, basis: 'calibrated' })
  }
  if (final.savings_usd !== null) add('router_savings_usd', final.savings_usd, { tenant })
  return updates
}

function ofAttempt(
  { provider, rung, cause, verdict, model, latency_ms, cost, tokens, usage_source, gates }: Attempt,
  add: (family: TraceFamily, value: number, labels: Update['labels']) => void,
): void {
  add('router_attempts_total', 1, { provider, rung, cause, result: verdict })
  add('router_upstream_duration_seconds', latency_ms / 1000, { provider })
  if (cost === null) add('router_unpriced_total', 1, { provider })
  if (usage_source === 'estimated') add('router_usage_estimated_total', 1, { provider })
  for (const [name, count] of Object.entries(tokens)) {
    if (count > 0) add('router_tokens_total', count, { provider, model, class: name })
  }
  for (const gate of gates) {
    add('router_gate_verdicts_total', 1, { gate_id: gate.gate_id, verdict: gate.verdict })
    add('router_gate_duration_seconds', gate.latency_ms / 1000, { gate_id: gate.gate_id })
  }
}
