import type { BudgetDimension } from '../../shared/wire/runtime/error.ts'

import type { TreeLimit } from '../runs/run-tree.ts'

/** Null: no limit; 0: nothing is allowed. */
export interface Limits {
  costNanoDay: number | null
  costNanoRun: number | null
  tokensDay: number | null
  runsDay: number | null
  hardFail: boolean
}

/** Of an agent that has no budget. */
export const NO_LIMITS: Limits = {
  costNanoDay: null,
  costNanoRun: null,
  tokensDay: null,
  runsDay: null,
  hardFail: true,
}

/** What counts against the limits of a day: spent, and held for calls and runs that are open. */
export interface Today {
  runs: number
  tokens: number
  costNano: number
  heldTokens: number
  heldNano: number
  /** Of what is spent: the most that calls may have cost which a crash cut off. */
  uncertainTokens: number
  uncertainNano: number
}

export interface Estimate {
  tokens: number
  costNano: number
}

/** What a run is likely to use, of a model that may have no price. */
export interface RunEstimate extends Estimate {
  unpriced?: string | undefined
}

/** In the unit of its dimension: runs, tokens, nano-USD. */
export interface Refusal {
  dimension: BudgetDimension
  limit: number
  used: number
  /** The model without a price, for which the limit cannot be held. */
  unpriced?: string
  /** The agent whose budget it is, where that is the one of a run above. */
  of?: string
}

const exceeds = (limit: number | null, used: number, more: number): limit is number =>
  limit !== null && (limit === 0 || used + more > limit)

/** A hard limit of cost that cannot be held, because the model has no price. */
export function unheldLimit(
  { costNanoRun, costNanoDay, hardFail }: Pick<Limits, 'costNanoRun' | 'costNanoDay' | 'hardFail'>,
  { unpriced }: { unpriced?: string | undefined },
): Refusal | undefined {
  if (!hardFail || unpriced === undefined) return undefined
  if (costNanoRun !== null) return { dimension: 'costPerRun', limit: costNanoRun, used: 0, unpriced }
  if (costNanoDay !== null) return { dimension: 'costPerDay', limit: costNanoDay, used: 0, unpriced }
  return undefined
}

/** Whether one more run fits (docs/spec/runtime.md §12): the first limit that it would break, or undefined. */
export function refusalOfRun(limits: Limits, today: Today, estimate: RunEstimate): Refusal | undefined {
  const { runsDay, costNanoRun, costNanoDay, tokensDay } = limits
  const unheld = unheldLimit(limits, estimate)
  const cost = today.costNano + today.heldNano
  const tokens = today.tokens + today.heldTokens
  if (exceeds(runsDay, today.runs, 1)) return { dimension: 'runsPerDay', limit: runsDay, used: today.runs }
  if (unheld) return unheld
  if (exceeds(costNanoRun, 0, estimate.costNano)) return { dimension: 'costPerRun', limit: costNanoRun, used: 0 }
  if (exceeds(costNanoDay, cost, estimate.costNano)) return { dimension: 'costPerDay', limit: costNanoDay, used: cost }
  if (exceeds(tokensDay, tokens, estimate.tokens)) return { dimension: 'tokensPerDay', limit: tokensDay, used: tokens }
  return undefined
}

/** The limits of a day of which so many per cent are used. */
export function reachedLimits({ costNanoDay, tokensDay, runsDay }: Limits, today: Today, pct: number): Refusal[] {
  const all = [
    { dimension: 'runsPerDay', limit: runsDay, used: today.runs },
    { dimension: 'costPerDay', limit: costNanoDay, used: today.costNano },
    { dimension: 'tokensPerDay', limit: tokensDay, used: today.tokens },
  ] as const
  return all.flatMap(({ dimension, limit, used }) =>
    limit !== null && used > 0 && used * 100 >= limit * pct ? [{ dimension, limit, used }] : [],
  )
}

/** The first limit that is passed by what was spent; for limits that stop nothing. */
export function exceededLimit(
  { costNanoRun, costNanoDay, tokensDay }: Limits,
  today: Pick<Today, 'tokens' | 'costNano'>,
  runNano: number,
): Refusal | undefined {
  const { tokens, costNano } = today
  if (exceeds(costNanoRun, runNano, 0)) return { dimension: 'costPerRun', limit: costNanoRun, used: runNano }
  if (exceeds(costNanoDay, costNano, 0)) return { dimension: 'costPerDay', limit: costNanoDay, used: costNano }
  if (exceeds(tokensDay, tokens, 0)) return { dimension: 'tokensPerDay', limit: tokensDay, used: tokens }
  return undefined
}

/** What a run has used, and what is still held for it. */
export interface OwnUse {
  /** Spent by it and all below it, and held for their calls in flight; the one in question left out. */
  usedNano: number
  /** Left of its forecast; a call takes from it first. */
  forecast: Estimate
}

/** The worst case of a call: everything it sends, and an answer as long as it may be. */
export interface Call {
  tokensIn: number
  maxOutputTokens: number
  model: string
  /** Nano-USD of so many tokens; null where the model has no price. */
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
export function roomForCall(
  limits: Limits,
  today: Today,
  own: OwnUse,
  call: Call,
  above: readonly TreeLimit[] = [],
): Hold | { refused: Refusal } {
  const { costNanoDay, costNanoRun, tokensDay } = limits
  const unpriced = call.costOf === null ? call.model : undefined
  const unheld = unheldLimit(limits, { unpriced }) ?? above.map(one => unheldAbove(one, unpriced)).find(Boolean)
  if (unheld) return { refused: unheld }
  // What the run holds for itself is its to use.
  const usedTokens = today.tokens + today.heldTokens - own.forecast.tokens
  const usedNano = today.costNano + today.heldNano - own.forecast.costNano
  const bounds: { left: number; refused: Refusal; cap: (left: number) => number }[] = []
  const byTokens = (left: number) => Math.floor(left - call.tokensIn)
  if (tokensDay !== null) {
    const refused = { dimension: 'tokensPerDay', limit: tokensDay, used: usedTokens } as const
    bounds.push({ left: tokensDay - usedTokens, refused, cap: byTokens })
  }
  const byCost = (left: number) => outputThatFits(call, left)
  if (costNanoRun !== null) {
    const refused = { dimension: 'costPerRun', limit: costNanoRun, used: own.usedNano } as const
    bounds.push({ left: costNanoRun - own.usedNano, refused, cap: byCost })
  }
  if (costNanoDay !== null) {
    const refused = { dimension: 'costPerDay', limit: costNanoDay, used: usedNano } as const
    bounds.push({ left: costNanoDay - usedNano, refused, cap: byCost })
  }
  for (const { limitNano, usedNano, agentName } of above) {
    const refused = { dimension: 'costPerRun', limit: limitNano, used: usedNano, of: agentName } as const
    bounds.push({ left: limitNano - usedNano, refused, cap: byCost })
  }
  let cap = call.maxOutputTokens
  for (const { left, refused, cap: outputFor } of bounds) {
    cap = Math.min(cap, refused.limit === 0 || left < 0 ? -1 : outputFor(left))
    if (cap < Math.min(LEAST_OUTPUT, call.maxOutputTokens)) return { refused }
  }
  return holdFor(call, cap, own.forecast)
}

function unheldAbove({ limitNano, agentName }: TreeLimit, unpriced: string | undefined): Refusal | undefined {
  if (unpriced === undefined) return undefined
  return { dimension: 'costPerRun', limit: limitNano, used: 0, unpriced, of: agentName }
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
  // Without a price, a soft limit that is reached is all that can be seen.
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
