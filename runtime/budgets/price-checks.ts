import { invalidMember } from '../../shared/http/api-error.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { AgentStore } from '../agents/store.ts'
import type { Ledger } from './ledger.ts'
import type { Limits } from './limits.ts'
import { noPrice } from './refusal.ts'
import type { BudgetStore } from './store.ts'

export interface PriceChecksDeps {
  store: Pick<BudgetStore, 'ofName'>
  ledger: Pick<Ledger, 'unpricedModel'>
  agents: Pick<AgentStore, 'currentByName'>
}

/** Says at once, where it is still to be changed, that a hard limit of cost could not be held. */
export function priceChecks({ store, ledger, agents }: PriceChecksDeps) {
  return {
    /** A budget that is to be saved for an agent. */
    async ofBudget(tenantId: string, agentName: string, limits: Limits): Promise<void> {
      const field = costLimit(limits)
      const version = field && (await agents.currentByName(tenantId, agentName))
      const unpriced = version && (await ledger.unpricedModel(tenantId, version.manifest))
      if (unpriced) refuse(field, `this limit could not be held: ${noPrice(unpriced)}, or save it with hardFail false`)
    },

    /** A manifest that is to be published under a name which may have a budget. */
    async ofManifest(tenantId: string, agentName: string, manifest: Manifest): Promise<void> {
      const budget = await store.ofName(tenantId, agentName)
      const field = budget && costLimit(budget)
      const unpriced = field && (await ledger.unpricedModel(tenantId, manifest))
      if (unpriced) refuse('manifest.model', `the budget of ${agentName} has a hard ${field}: ${noPrice(unpriced)}`)
    },
  }
}

export type PriceChecks = ReturnType<typeof priceChecks>

/** The hard limit of cost that a budget has; one of 0 allows nothing and needs no price. */
function costLimit({ hardFail, costNanoDay, costNanoRun }: Limits): string | undefined {
  if (!hardFail) return undefined
  if (costNanoRun) return 'maxCostUsdPerRun'
  return costNanoDay ? 'maxCostUsdPerDay' : undefined
}

function refuse(path: string, message: string): never {
  throw invalidMember(path, message)
}
