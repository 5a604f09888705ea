import type { Metrics } from '../../shared/metrics/metrics.ts'
import { type FeedbackResult, verdicts } from '../../shared/wire/router/feedback.ts'
import type { CalibrationFigures } from '../calibrate/calibration-reads.ts'

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
  const feedback = metrics.counter('router_feedback_total', 'Outcomes taken.')
  const outcomes = metrics.counter('router_outcomes_total', 'Outcomes taken that said something new, by verdict.')
  threshold.set(0)
  failure.set(0)
  for (const status of ['recorded', 'updated', 'duplicate']) feedback.add(0, { status })
  for (const verdict of verdicts) outcomes.add(0, { verdict })
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
