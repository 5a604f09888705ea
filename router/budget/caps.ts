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

const capped = new WeakMap<RoutingConfig, boolean>()

/** Whether a config caps anything for anybody. Accounts are shared, so a call without a cap counts in another one's. */
export function hasCaps(config: RoutingConfig): boolean {
  let known = capped.get(config)
  if (known === undefined) {
    const budgets = [config.budget, ...config.routes.map(({ budget }) => budget), ...Object.values(config.tenants)]
    known = budgets.some(
      budget => (budget?.perRequest ?? budget?.perSession ?? budget?.perDay ?? budget?.perTenantDay ?? null) !== null,
    )
    capped.set(config, known)
  }
  return known
}
