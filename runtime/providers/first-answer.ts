import { boundedSum } from '../../shared/money/money.ts'
import { type CallCost, NOTHING_SPENT } from '../execution/call-cost.ts'
import { StepFailure } from '../execution/failure.ts'
import type { AskModel, FoundModel, ModelAnswer, ModelCall, ModelRequest } from '../execution/models/model.ts'

/**
 * The candidates of an alias as one model: each is asked at most once in an attempt, in their order, until one answers. A candidate is
 * passed over for what another one may not have: a rate limit, a fault of its host, no connection; only where all are limited is one waited for. Pieces of an answer that were read
 * out already cannot be taken back, so after them the attempt ends as it would with a single model.
 */
export function firstAnswer(candidates: readonly [FoundModel, ...FoundModel[]]): FoundModel {
  const [first, ...others] = candidates
  if (others.length === 0) return first
  const isLimited = () => candidates.every(one => one.isLimited?.() ?? false)
  return {
    ...first,
    ask: askInTurn(candidates),
    prices: () => dearest(candidates),
    isLimited,
    ready: async wait => (isLimited() ? first.ready?.(wait) : undefined),
  }
}

function askInTurn(candidates: readonly FoundModel[]): AskModel {
  return async (request, call) => {
    const failures: StepFailure[] = []
    let lost: CallCost | undefined
    for (const [index, candidate] of candidates.entries()) {
      if (index > 0 && call.pricedOnly && (await candidate.prices?.()) == null) continue
      const before = lost
      const maxOutputTokens = await roomBehind(lost, request, call)
      if (maxOutputTokens === undefined) break
      let read: (() => Promise<CallCost>) | undefined
      let isHeard = false
      const { onDelta } = call
      const own: ModelCall = {
        ...call,
        // Two models of one host are two calls.
        key: index === 0 ? call.key : `${call.key}:${index}`,
        metered(reading) {
          read = reading
          call.metered?.(async () => added(before, await reading()))
        },
        ...(onDelta && {
          onDelta(text: string) {
            isHeard = true
            onDelta(text)
          },
        }),
      }
      try {
        return withLost(await candidate.ask({ ...request, maxOutputTokens }, own), lost)
      } catch (error) {
        if (call.signal.aborted || !(error instanceof StepFailure)) throw error
        failures.push(error)
        // What the first refuses for good is wrong with the request or its settings; a stand-in may only be set up badly.
        if (isHeard || (index === 0 && !error.transient)) break
        if (read) lost = added(lost, await read())
      }
    }
    throw together(failures)
  }
}

/** How long an answer may be behind candidates that have used so much; what was held for the call is no longer enough then. */
async function roomBehind(
  lost: CallCost | undefined,
  { maxOutputTokens }: ModelRequest,
  { standIn }: ModelCall,
): Promise<number | undefined> {
  return lost === undefined || isNothing(lost) || !standIn ? maxOutputTokens : standIn(lost.spent)
}

/** Until a candidate is asked, any of them may answer: at most, a call costs what the dearest takes. */
async function dearest([first, ...others]: readonly FoundModel[]): ReturnType<NonNullable<FoundModel['prices']>> {
  const costOf = (await first?.prices?.()) ?? null
  if (costOf === null) return null
  const found = await Promise.all(others.map(other => other.prices?.()))
  const all = [costOf, ...found.filter(price => price != null)]
  return (tokensIn, tokensOut, atMost) =>
    atMost ? Math.max(...all.map(one => one(tokensIn, tokensOut, true))) : costOf(tokensIn, tokensOut)
}

/** What candidates took that gave no answer is part of what the answer cost. */
function withLost(answer: ModelAnswer, lost: CallCost | undefined): ModelAnswer {
  if (lost === undefined) return answer
  const { spent, parts, unpriced } = added(lost, answer)
  return { ...answer, spent, ...(parts && { parts }), ...(unpriced && { unpriced }) }
}

function added(lost: CallCost | undefined, cost: CallCost): CallCost {
  if (lost === undefined || isNothing(lost)) return cost
  const [a, b] = [lost.spent, cost.spent]
  const parts = lost.parts && cost.parts ? sumOf(lost.parts, cost.parts) : (cost.parts ?? lost.parts)
  return {
    ...cost,
    spent: {
      tokensIn: a.tokensIn + b.tokensIn,
      tokensOut: a.tokensOut + b.tokensOut,
      costNano: boundedSum(a.costNano, b.costNano),
    },
    ...(parts && { parts }),
    ...((lost.estimated || cost.estimated) && { estimated: true }),
    ...((lost.unpriced || cost.unpriced) && { unpriced: true }),
  }
}

function sumOf(a: NonNullable<CallCost['parts']>, b: NonNullable<CallCost['parts']>): NonNullable<CallCost['parts']> {
  return {
    inputNano: a.inputNano + b.inputNano,
    cacheReadNano: a.cacheReadNano + b.cacheReadNano,
    cacheWriteNano: a.cacheWriteNano + b.cacheWriteNano,
    outputNano: a.outputNano + b.outputNano,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  }
}

function isNothing({ spent = NOTHING_SPENT }: CallCost): boolean {
  return spent.tokensIn + spent.tokensOut + spent.costNano === 0
}

/** What the attempt failed of; the same call may work later if any candidate may, as soon as the first of them may. */
function together(failures: readonly StepFailure[]): StepFailure {
  const [first] = failures
  if (first === undefined) throw new Error('no candidate was asked')
  if (failures.length === 1) return first
  const waits = failures.filter(({ transient }) => transient).map(({ retryAfterMs }) => retryAfterMs ?? 0)
  const wait = Math.min(...waits)
  return new StepFailure(first.code, failures.map(({ message }) => message).join('; then '), {
    transient: waits.length > 0,
    unbilled: failures.every(({ unbilled }) => unbilled),
    ...(wait > 0 && { retryAfterMs: wait }),
    cause: first,
  })
}
