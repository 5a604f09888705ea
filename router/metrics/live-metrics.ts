import type { Metrics } from '../../shared/metrics/metrics.ts'

export interface LiveState {
  providers: () => readonly string[]
  breakerOf: (provider: string) => 'closed' | 'half_open' | 'open'
  gates: () => readonly string[]
  isGateDisabled: (gate: string) => boolean
  /** Undefined where the host does not count them. */
  inFlight: (() => number) | undefined
}

const BREAKER = { closed: 0, half_open: 1, open: 2 } as const

/** Gauges that are read when the page is asked for. */
export function liveMetrics(metrics: Metrics, { providers, breakerOf, gates, isGateDisabled, inFlight }: LiveState) {
  const breaker = metrics.gauge('router_breaker_state', '0 closed, 1 half open, 2 open.')
  const disabled = metrics.gauge(
    'router_gate_disabled',
    '1 while a gate is switched off by its error budget, for any tenant.',
  )
  if (inFlight) metrics.gauge('router_in_flight_requests', 'Requests being answered.').read(inFlight)
  return {
    text(): string {
      for (const provider of providers()) breaker.set(BREAKER[breakerOf(provider)], { provider })
      for (const gate_id of gates()) disabled.set(isGateDisabled(gate_id) ? 1 : 0, { gate_id })
      return metrics.text()
    },
  }
}
