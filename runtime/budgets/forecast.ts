/** One run of the past, as far as a forecast needs it. */
export interface PastRun {
  tokensIn: number
  tokensOut: number
  costNano: number
}

export interface ForecastInput {
  /** Newest first; at most 200 of the current version, of the last 30 days. */
  past: readonly PastRun[]
  manifest: { characters: number; hasTools: boolean; maxOutputTokens: number }
  /** Nano-USD of a call of that size; null where the price is unknown. */
  costOf: ((tokensIn: number, tokensOut: number) => number) | null
}

export interface Forecasted {
  tokensIn: number
  tokensOut: number
  /** Null: the price of the model is unknown. */
  costNano: number | null
  confidence: number
  basis: 'history' | 'manifest'
  sampleSize: number
  p90Nano?: number
}

const LEAST_HISTORY = 3

/** What a run is likely to use (docs/spec/runtime.md §12): the medians of its past, or a guess from its manifest. */
export function forecast({ past, manifest, costOf }: ForecastInput): Forecasted {
  const n = past.length
  if (n < LEAST_HISTORY) {
    const times = manifest.hasTools ? 2 : 1
    const tokensIn = Math.ceil(manifest.characters / 4) * times
    const tokensOut = Math.min(manifest.maxOutputTokens, 512) * times
    const costNano = costOf?.(tokensIn, tokensOut) ?? null
    return { tokensIn, tokensOut, costNano, confidence: round(0.1 + 0.05 * n), basis: 'manifest', sampleSize: n }
  }
  const sorted = (of: (run: PastRun) => number) => past.map(of).sort((a, b) => a - b)
  const costs = sorted(run => run.costNano)
  const free = costs.at(-1) === 0
  const cv = variation(free ? past.map(run => run.tokensIn + run.tokensOut) : costs)
  const confidence = Math.min(0.95, 0.3 + 0.65 * (n / (n + 20)) * (1 - Math.min(1, cv) / 2))
  return {
    tokensIn: median(sorted(run => run.tokensIn)),
    tokensOut: median(sorted(run => run.tokensOut)),
    costNano: costOf && median(costs),
    confidence: round(confidence),
    basis: 'history',
    sampleSize: n,
    ...(costOf && { p90Nano: costs[Math.ceil(0.9 * n) - 1]! }),
  }
}

function median(sorted: readonly number[]): number {
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : Math.ceil((sorted[middle - 1]! + sorted[middle]!) / 2)
}

/** Standard deviation as a part of the mean. */
function variation(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  if (mean === 0) return 0
  const spread = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length
  return Math.sqrt(spread) / mean
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
