import type { BudgetDimension } from '../../shared/wire/runtime/error.ts'

/** Null: no limit; 0: nothing is allowed. */
export interface Limits {
  costNanoDay: number | null
  costNanoRun: number | null
  tokensDay: number | null
  runsDay: number | null
}

/** What counts against the limits of a day: spent, and held for calls and runs that are open. */
export interface Today {
  runs: number
  tokens: number
  costNano: number
  heldTokens: number
  heldNano: number
}

export interface Estimate {
  tokens: number
  costNano: number
}

/** In the unit of its dimension: runs, tokens, nano-USD. */
export interface Refusal {
  dimension: BudgetDimension
  limit: number
  used: number
}

const exceeds = (limit: number | null, used: number, more: number): limit is number =>
  limit !== null && (limit === 0 || used + more > limit)

/** Whether one more run fits (runtime contract §12): the first limit that it would break, or undefined. */
export function refusalOfRun(limits: Limits, today: Today, estimate: Estimate): Refusal | undefined {
  const { runsDay, costNanoRun, costNanoDay, tokensDay } = limits
  const cost = today.costNano + today.heldNano
  const tokens = today.tokens + today.heldTokens
  if (exceeds(runsDay, today.runs, 1)) return { dimension: 'runsPerDay', limit: runsDay, used: today.runs }
  if (exceeds(costNanoRun, 0, estimate.costNano)) return { dimension: 'costPerRun', limit: costNanoRun, used: 0 }
  if (exceeds(costNanoDay, cost, estimate.costNano)) return { dimension: 'costPerDay', limit: costNanoDay, used: cost }
  if (exceeds(tokensDay, tokens, estimate.tokens)) return { dimension: 'tokensPerDay', limit: tokensDay, used: tokens }
  return undefined
}

/** The limits of a day of which so many per cent are used. */
export function reached({ costNanoDay, tokensDay, runsDay }: Limits, today: Today, pct: number): Refusal[] {
  const all = [
    { dimension: 'runsPerDay', limit: runsDay, used: today.runs },
    { dimension: 'costPerDay', limit: costNanoDay, used: today.costNano },
    { dimension: 'tokensPerDay', limit: tokensDay, used: today.tokens },
  ] as const
  return all.flatMap(({ dimension, limit, used }) =>
    limit !== null && used > 0 && used * 100 >= limit * pct ? [{ dimension, limit, used }] : [],
  )
}

/** What a run holds already, and what it has spent. */
export interface OwnUse {
  spentNano: number
  /** Left of its forecast; a call takes from it first. */
  forecast: Estimate
  /** Held for its calls in flight, the one in question left out. */
  calls: Estimate
}

/** The worst case of a call: everything it sends, and an answer as long as it may be. */
export interface Call {
  tokensIn: number
  maxOutputTokens: number
  /** Nano-USD of so many tokens; null where nobody says what the model costs. */
  costOf: ((tokensIn: number, tokensOut: number) => number) | null
}

export interface Hold extends Estimate {
  maxOutputTokens: number
  /** Of the hold, what is taken from the run's forecast. */
  moved: Estimate
}

/** Fewer tokens than this are no answer. */
export const LEAST_OUTPUT = 16

/** Room for a call: its hold, with the answer cut to what fits, or the limit that leaves no room. */
export function roomForCall(limits: Limits, today: Today, own: OwnUse, call: Call): Hold | { refused: Refusal } {
  const { costNanoDay, costNanoRun, tokensDay } = limits
  // What the run holds for itself is its to use.
  const usedTokens = today.tokens + today.heldTokens - own.forecast.tokens
  const usedNano = today.costNano + today.heldNano - own.forecast.costNano
  const usedByRun = own.spentNano + own.calls.costNano
  const bounds: { left: number; refused: Refusal; cap: (left: number) => number }[] = []
  const byTokens = (left: number) => Math.floor(left - call.tokensIn)
  if (tokensDay !== null) {
    const refused = { dimension: 'tokensPerDay', limit: tokensDay, used: usedTokens } as const
    bounds.push({ left: tokensDay - usedTokens, refused, cap: byTokens })
  }
  const byCost = (left: number) => outputThatFits(call, left)
  if (costNanoRun !== null) {
    const refused = { dimension: 'costPerRun', limit: costNanoRun, used: usedByRun } as const
    bounds.push({ left: costNanoRun - usedByRun, refused, cap: byCost })
  }
  if (costNanoDay !== null) {
    const refused = { dimension: 'costPerDay', limit: costNanoDay, used: usedNano } as const
    bounds.push({ left: costNanoDay - usedNano, refused, cap: byCost })
  }
  let cap = call.maxOutputTokens
  for (const { left, refused, cap: outputFor } of bounds) {
    cap = Math.min(cap, refused.limit === 0 || left < 0 ? -1 : outputFor(left))
    if (cap < Math.min(LEAST_OUTPUT, call.maxOutputTokens)) return { refused }
  }
  return holdFor(call, cap, own.forecast)
}

/** The hold of a call that may answer with so many tokens. */
export function holdFor(call: Call, maxOutputTokens: number, forecast: Estimate): Hold {
  const tokens = call.tokensIn + maxOutputTokens
  const costNano = call.costOf?.(call.tokensIn, maxOutputTokens) ?? 0
  const moved = { tokens: Math.min(tokens, forecast.tokens), costNano: Math.min(costNano, forecast.costNano) }
  return { tokens, costNano, maxOutputTokens, moved }
}

/** The longest answer whose call costs at most `left`; -1 when not even the question fits. */
function outputThatFits({ costOf, tokensIn, maxOutputTokens }: Call, left: number): number {
  // Where nobody knows a price, a limit that is reached is all that can be seen.
  if (costOf === null) return left > 0 ? maxOutputTokens : -1
  if (costOf(tokensIn, maxOutputTokens) <= left) return maxOutputTokens
  if (costOf(tokensIn, 0) > left) return -1
  let [fits, tooMany] = [0, maxOutputTokens]
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2)
    if (costOf(tokensIn, middle) <= left) fits = middle
    else tooMany = middle
  }
  return fits
}
