import type { NanoUsd } from '../../shared/money/money.ts'
import type { Budget, Route, RoutingConfig } from '../config/routing-config.ts'
import type { Caps } from './ledger.ts'

/** The caps of one request: the smallest of the process's, the route's, the tenant's and the caller's own wins. */
export function capsFor(config: RoutingConfig, route: Route, tenantId: string, ownLimit: NanoUsd | null): Caps {
  const budgets: readonly Budget[] = [config.budget, route.budget, config.tenants[tenantId]].filter(
    budget => budget !== undefined,
  )
  const smallest = (pick: (budget: Budget) => NanoUsd | null, ...more: (NanoUsd | null)[]) => {
    const given = [...budgets.map(pick), ...more].filter(cap => cap !== null)
    return given.length === 0 ? null : Math.min(...given)
  }
  return {
    request: smallest(budget => budget.perRequest, ownLimit),
    session: smallest(budget => budget.perSession),
    day: smallest(budget => budget.perDay),
    tenant_day: smallest(budget => budget.perTenantDay),
  }
}
