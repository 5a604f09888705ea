import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { mostTokensIn } from '../../budgets/worst-case.ts'
import { RunFailure } from '../../execution/failure.ts'
import type { Claimed } from '../../execution/lease-store.ts'
import type { FoundModel } from '../../execution/models/model.ts'
import type { BudgetRequests } from './budget-requests.ts'

/** A model as a run on a node may ask it, whose agent has a limit of a day: each call is granted by the control plane first. */
export function grantedModel(
  db: Db,
  asks: Pick<BudgetRequests, 'ask'>,
  run: Pick<Claimed, 'id'>,
  model: FoundModel,
): FoundModel {
  return {
    ...model,
    async ask(request, call) {
      const found = await db.execute({
        sql: `select epoch, ask_budget, (select coalesce(max(seq), 0) from events where run_id = ?1) as last_event from tunnel_runs where run_id = ?1`,
        args: [run.id],
      })
      const [placed] = rowsOf<{ epoch: number; ask_budget: number; last_event: number }>(found)
      if (placed === undefined || placed.ask_budget === 0) return model.ask(request, call)
      const costOf = (await model.prices?.()) ?? null
      const tokensIn = mostTokensIn(request)
      const { maxOutputTokens: wanted } = request
      // `<runId>:<stepId>:<attempt>`
      const colon = call.key.lastIndexOf(':')
      const stepId = call.key.slice(run.id.length + 1, colon)
      const { refusal, outputTokens } = await asks.ask(
        {
          runId: run.id,
          epoch: BigInt(placed.epoch),
          stepId,
          attempt: Number(call.key.slice(colon + 1)),
          tokens: BigInt(tokensIn + wanted),
          outputTokens: BigInt(wanted),
          lastEvent: BigInt(placed.last_event),
          costNanoUsd: BigInt(costOf?.(tokensIn, wanted, true) ?? 0),
          inputCostNanoUsd: BigInt(costOf?.(tokensIn, 0, true) ?? 0),
          model: model.id,
          unpriced: costOf === null,
        },
        call.signal,
      )
      if (refusal !== '') throw new RunFailure('budget_exceeded', refusal, { stepId })
      const maxOutputTokens = Math.min(wanted, Number(outputTokens))
      const answer = await model.ask({ ...request, maxOutputTokens }, call)
      return answer.stop === 'length' && maxOutputTokens < wanted ? { ...answer, cappedByBudget: true } : answer
    },
  }
}
