import { type HostFacts, hostMetrics, type Metrics } from '../../shared/metrics/metrics.ts'
import { pause } from '../../shared/sql/db-fault.ts'
import { type FeedbackResult, verdicts } from '../../shared/wire/router/feedback.ts'
import { type BudgetRefusal, budgetScopes } from '../budget/ledger.ts'
import type { CalibrationFigures } from '../calibrate/calibration-reads.ts'

/** What there was too much of; `connections`: as many as this process may open. */
const shedReasons = ['concurrency', 'bytes', 'connections'] as const
export type ShedReason = (typeof shedReasons)[number]

export interface LiveState {
  /** Resolves when what has ended is counted; undefined where nothing is kept. */
  counted: (() => Promise<void>) | undefined
  /** Shows where the thresholds stand. */
  calibration: () => Promise<void>
  providers: () => readonly string[]
  breakerOf: (provider: string) => 'closed' | 'half_open' | 'open'
  gates: () => readonly string[]
  isGateDisabled: (gate: string) => boolean
  /** What the host knows of its process; undefined where it says nothing. */
  host: HostFacts | undefined
  /** Undefined where the host does not count them. */
  inFlight: (() => number) | undefined
}

const COUNT_MS = 250

const BREAKER = { closed: 0, half_open: 1, open: 2 } as const

/** Gauges that are read when the page is asked for. */
export function liveMetrics(
  metrics: Metrics,
  { counted, calibration, providers, breakerOf, gates, isGateDisabled, host, inFlight }: LiveState,
) {
  const breaker = metrics.gauge('router_breaker_state', '0 closed, 1 half open, 2 open.')
  const disabled = metrics.gauge(
    'router_gate_disabled',
    '1 while a gate is switched off by its error budget, for any tenant.',
  )
  const onHost = host && hostMetrics(metrics, 'router', host)
  if (inFlight) metrics.gauge('router_in_flight_requests', 'Requests being answered.').read(inFlight)
  return {
    async text(): Promise<string> {
      // A page must come also while the thread that counts is held up by its store.
      if (counted) await Promise.race([counted(), pause(COUNT_MS)])
      await Promise.all([calibration(), onHost?.()])
      for (const provider of providers()) breaker.set(BREAKER[breakerOf(provider)], { provider })
      for (const gate_id of gates()) disabled.set(isGateDisabled(gate_id) ? 1 : 0, { gate_id })
      return metrics.text()
    },
  }
}

/** Counts what was not done for want of room or of money (docs/spec/router.md §2.7). */
export function refusalMetrics(metrics: Metrics) {
  const refuseWhenFull = metrics.counter(
    'router_shed_total',
    'Calls refused because too many were being answered, too many bytes of them and their answers were held, or no connection could be opened.',
    shedReasons.map(reason => ({ reason })),
  )
  const budget = metrics.counter(
    'router_budget_refusals_total',
    'Calls not made because a budget did not cover them.',
    budgetScopes.map(scope => ({ scope })),
  )
  return {
    refuseWhenFull: (reason: ShedReason) => refuseWhenFull.add(1, { reason }),
    budgetRefused: (scope: BudgetRefusal['scope']) => budget.add(1, { scope }),
  }
}

/** Counts what is reported and shows what it came to (docs/spec/router.md §2.7). */
export function calibrationMetrics(metrics: Metrics) {
  const threshold = metrics.gauge('router_serve_threshold', 'The highest serve threshold of a route in use.')
  const failure = metrics.gauge('router_realized_served_failure', 'Failed of reported outcomes, since the store began.')
  const routeThreshold = metrics.gauge('router_route_serve_threshold', 'Serve threshold of a route.')
  const routeFailure = metrics.gauge('router_route_served_failure', 'Failed of reported outcomes of a route.')
  const certified = metrics.gauge(
    'router_route_certified',
    '1 while what a route serves is certified: the served failures stay below alpha, best attempts included.',
  )
  const pairs = metrics.gauge('router_route_calibration_n', 'Scored answers with an outcome.')
  const feedback = metrics.counter('router_feedback_total', 'Outcomes taken.', [
    { status: 'recorded' },
    { status: 'updated' },
    { status: 'duplicate' },
  ])
  const outcomes = metrics.counter(
    'router_outcomes_total',
    'Outcomes taken that said something new, by verdict.',
    verdicts.map(verdict => ({ verdict })),
  )
  threshold.set(0)
  failure.set(0)
  return {
    counted({ status, verdict }: FeedbackResult): void {
      feedback.add(1, { status })
      if (status !== 'duplicate') outcomes.add(1, { verdict })
    },
    show(figures: CalibrationFigures): void {
      threshold.set(figures.threshold)
      failure.set(figures.servedFailure)
      for (const { tenant, route, ...one } of figures.routes) {
        routeThreshold.set(one.threshold, { tenant, route })
        routeFailure.set(one.servedFailure, { tenant, route })
        certified.set(one.certified ? 1 : 0, { tenant, route })
        pairs.set(one.n, { tenant, route })
      }
    },
  }
}
