import type { InStatement } from '@libsql/client/web'
import type { EventMeta } from '../../shared/wire/runtime/journal.ts'
import type { Spent, SpentParts } from './journal/commit.ts'
import type { StepExtras } from './journal/run-journal.ts'

/** What a model call has used, as far as is known. */
export interface CallCost {
  spent: Spent
  provider?: string
  /** `<provider>/<model>` as it answered, or as it was asked. */
  model?: string
  /** Part of it is counted from bytes, because the provider did not say. */
  estimated?: boolean
  parts?: Omit<SpentParts, 'unpricedCalls'>
  unpriced?: boolean
  /** Statements that belong to the commit of the cost; each holds its own condition on the run's epoch. */
  extraStatements?: readonly InStatement[]
}

/** `epoch`: of the process that commits it, where that is not the owner who made the call. */
export type Reading = (epoch?: number) => Promise<CallCost>

/** What the calls in flight of a run have used so far, by step: read by the process that ends a step without a result. */
export type OpenCalls = Map<string, Reading>

export const NOTHING_SPENT: Spent = { tokensIn: 0, tokensOut: 0, costNano: 0 }

/** The journal's words for a call that came to no result; nothing where it used nothing. */
export function costMeta(cost: CallCost | undefined): EventMeta {
  if (cost === undefined || isNothing(cost.spent)) return {}
  const { spent, parts, provider, model, estimated, unpriced } = cost
  // In the order of the canonical text, which spares its maker the sorting.
  return {
    ...cacheMeta(parts),
    costUsd: spent.costNano / 1e9,
    ...(estimated && { estimated }),
    ...(model !== undefined && { model }),
    ...(provider !== undefined && { provider }),
    tokensIn: spent.tokensIn,
    tokensOut: spent.tokensOut,
    ...(unpriced && { unpriced }),
  }
}

/** What is committed with those words. */
export function costExtras(cost: CallCost | undefined): StepExtras {
  if (cost === undefined) return {}
  const { spent, parts, model, unpriced, extraStatements } = cost
  return {
    ...(!isNothing(spent) && { spent, ...(model !== undefined && { model }), parts: countedParts(parts, unpriced) }),
    ...(extraStatements && { extra: extraStatements }),
  }
}

/** Of the tokens in, those that a cache had or took; only where there are any. */
export function cacheMeta(parts: CallCost['parts']): EventMeta {
  const { cacheReadTokens = 0, cacheWriteTokens = 0 } = parts ?? {}
  return { ...(cacheReadTokens > 0 && { cacheReadTokens }), ...(cacheWriteTokens > 0 && { cacheWriteTokens }) }
}

export function countedParts(parts: CallCost['parts'], unpriced = false): Partial<SpentParts> {
  return { ...parts, ...(unpriced && { unpricedCalls: 1 }) }
}

function isNothing({ tokensIn, tokensOut, costNano }: Spent): boolean {
  return tokensIn + tokensOut + costNano === 0
}
