import { fromUsd, type NanoUsd } from '../../shared/money/money.ts'
import type { BudgetTable } from './budget-table.ts'
import type { Budget } from './routing-config.ts'

const cap = (usd: number | undefined): NanoUsd | null => (usd === undefined ? null : fromUsd(usd))

/** A budget table as it stands. The caps of other tables apply beside it: the smallest one wins. */
export function resolveBudget(table: BudgetTable): Budget {
  return {
    perRequest: cap(table.per_request_usd),
    perSession: cap(table.per_session_usd),
    perDay: cap(table.per_day_usd),
    perTenantDay: cap(table.per_tenant_day_usd),
    tokensPerByte: table.tokens_per_byte ?? null,
    mediaTokenBound: table.media_token_bound ?? null,
    onExhausted: table.on_exhausted ?? null,
  }
}

/** A route's budget: its own caps, and the settings of the table above it where it names none. */
export function combineBudgets(table: BudgetTable, above: Budget): Budget {
  const own = resolveBudget(table)
  return {
    ...own,
    tokensPerByte: own.tokensPerByte ?? above.tokensPerByte,
    mediaTokenBound: own.mediaTokenBound ?? above.mediaTokenBound,
    onExhausted: own.onExhausted ?? above.onExhausted,
  }
}
