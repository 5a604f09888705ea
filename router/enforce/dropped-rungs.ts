import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { DroppedRung } from '../../shared/wire/router/trace.ts'

/** Reasons remembered at once; a caller that sends a new one with each request gets the oldest reported again. */
const MOST_KNOWN = 1000

/** Counts rungs that could not take a request, and says each reason once: a ladder whose rung is never asked saves nothing. */
export function droppedRungs(metrics: Metrics, log: Log) {
  const counter = metrics.counter('router_rungs_dropped_total', 'Rungs that could not take a request, by reason.')
  const said = new Set<string>()
  return (route: number, dropped: readonly DroppedRung[] = []): void => {
    for (const { rung, model, reason, because } of dropped) {
      counter.add(1, { route, model, reason })
      const key = `${route} ${model} ${reason === 'max_input_tokens' ? '' : because} ${reason}`
      if (said.has(key)) continue
      said.add(key)
      if (said.size > MOST_KNOWN) said.delete(said.values().next().value!)
      log.info('a rung is left out, because it cannot take such a request', { route, rung, model, reason, because })
    }
  }
}
