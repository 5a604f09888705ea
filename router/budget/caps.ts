import type { NanoUsd } from '../../shared/money/money.ts'
import type { Budget, Route, RoutingConfig } from '../config/routing-config.ts'
import type { Caps } from './ledger.ts'

/**
 * The caps of one request, each on the account that it speaks of: what the process spends in a day, what this tenant does, and what
 * goes over this route. Of one request, and of a session, the smallest cap wins.
 */
export function capsFor(config: RoutingConfig, route: Route, tenantId: string, ownLimit: NanoUsd | null): Caps {
  const tenant = config.tenants[tenantId]
  const budgets: readonly Budget[] = [config.budget, route.budget, tenant].filter(budget => budget !== undefined)
  const smallest = (...caps: (NanoUsd | null | undefined)[]) => {
    const given = caps.filter(cap => cap != null)
    return given.length === 0 ? null : Math.min(...given)
  }
  return {
    request: smallest(...budgets.map(({ perRequest }) => perRequest), ownLimit),
    session: smallest(...budgets.map(({ perSession }) => perSession)),
    day: config.budget.perDay,
    tenant_day: smallest(config.budget.perTenantDay, tenant?.perTenantDay, tenant?.perDay),
    route_day: route.budget.perDay,
    route_tenant_day: route.budget.perTenantDay,
  }
}

const capped = new WeakMap<RoutingConfig, boolean>()

/** Whether a config has any cap. Accounts are shared, so a call without a cap counts in another one's. */
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
