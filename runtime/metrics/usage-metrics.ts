import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { RunObserver } from '../execution/engine-deps.ts'

/** What model calls used, as their results became durable; what was copied into a fork was paid for once. */
export function usageMetrics(metrics: Metrics): RunObserver {
  const tokens = metrics.counter('waybill_tokens_total', 'Tokens that models read and wrote.')
  const cost = metrics.counter('waybill_cost_usd_total', 'What model calls cost, in US dollars.')
  const unpriced = metrics.counter(
    'waybill_unpriced_calls_total',
    'Model calls that are no part of the cost, as their model has no price.',
  )
  return {
    kept(_run, entries) {
      for (const { meta } of entries) {
        if (meta.copiedFrom !== undefined) continue
        const { tokensIn = 0, tokensOut = 0, costUsd = 0 } = meta
        if (tokensIn + tokensOut + costUsd === 0) continue
        const by = { provider: String(meta.provider ?? ''), model: String(meta.model ?? '') }
        tokens.add(tokensIn, { direction: 'in', ...by })
        tokens.add(tokensOut, { direction: 'out', ...by })
        cost.add(costUsd, by)
        if (meta.unpriced === true) unpriced.add(1, by)
      }
    },
    ended: () => undefined,
  }
}
