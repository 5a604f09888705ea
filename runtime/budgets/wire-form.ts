import type { z } from 'zod'
import { fromUsd, toUsd } from '../../shared/money/money.ts'
import type { Budget, budgetPut } from '../../shared/wire/runtime/budget.ts'
import type { Today } from './limits.ts'
import type { BudgetRow } from './store.ts'

const usdOrNull = (nano: number | null) => (nano === null ? null : toUsd(nano))
const nanoOrNull = (usd: number | null) => (usd === null ? null : fromUsd(usd))

export function toBudget(row: Omit<BudgetRow, 'createdMs'>, today: Today): Budget {
  return {
    agentName: row.agentName,
    maxCostUsdPerDay: usdOrNull(row.costNanoDay),
    maxCostUsdPerRun: usdOrNull(row.costNanoRun),
    maxTokensPerDay: row.tokensDay,
    maxRunsPerDay: row.runsDay,
    hardFail: row.hardFail,
    notifyAtPct: row.notifyAtPct,
    toolLimits: row.toolLimits,
    today: {
      runs: today.runs,
      tokens: today.tokens,
      costUsd: toUsd(today.costNano),
      uncertainTokens: today.uncertainTokens,
      uncertainCostUsd: toUsd(today.uncertainNano),
      reserved: { tokens: today.heldTokens, costUsd: toUsd(today.heldNano) },
    },
    updatedAt: new Date(row.updatedMs).toISOString(),
  }
}

export function toLimits(put: z.output<typeof budgetPut>) {
  return {
    costNanoDay: nanoOrNull(put.maxCostUsdPerDay),
    costNanoRun: nanoOrNull(put.maxCostUsdPerRun),
    tokensDay: put.maxTokensPerDay,
    runsDay: put.maxRunsPerDay,
    hardFail: put.hardFail,
    notifyAtPct: put.notifyAtPct,
    toolLimits: put.toolLimits,
  }
}
