import type { Metrics } from '../../shared/metrics/metrics.ts'
import { pause } from '../../shared/sql/db-fault.ts'

export interface LiveState {
  /** Resolves when what has ended is counted; undefined where nothing is kept. */
  counted: (() => Promise<void>) | undefined
  /** Shows where the thresholds stand. */
  calibration: () => Promise<void>
  providers: () => readonly string[]
  breakerOf: (provider: string) => 'closed' | 'half_open' | 'open'
  gates: () => readonly string[]
  isGateDisabled: (gate: string) => boolean
  /** Undefined where the host does not count them. */
  inFlight: (() => number) | undefined
}

const COUNT_MS = 250

const BREAKER = { closed: 0, half_open: 1, open: 2 } as const

/** Gauges that are read when the page is asked for. */
export function liveMetrics(
  metrics: Metrics,
  { counted, calibration, providers, breakerOf, gates, isGateDisabled, inFlight }: LiveState,
) {
  const breaker = metrics.gauge('router_breaker_state', '0 closed, 1 half open, 2 open.')
  const disabled = metrics.gauge(
    'router_gate_disabled',
    '1 while a gate is switched off by its error budget, for any tenant.',
  )
  if (inFlight) metrics.gauge('router_in_flight_requests', 'Requests being answered.').read(inFlight)
  return {
    async text(): Promise<string> {
      // A page must come also while the thread that counts is held up by its store.
      if (counted) await Promise.race([counted(), pause(COUNT_MS)])
      await calibration()
      for (const provider of providers()) breaker.set(BREAKER[breakerOf(provider)], { provider })
      for (const gate_id of gates()) disabled.set(isGateDisabled(gate_id) ? 1 : 0, { gate_id })
      return metrics.text()
    },
  }
}
