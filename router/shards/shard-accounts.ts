import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { budgetLedger, type SpentRow } from '../budget/ledger.ts'
import type { spentStore } from '../budget/spent-store.ts'

type SpentStore = ReturnType<typeof spentStore>

export interface ShardAccountsDeps {
  clock: Clock
  log: Log
  /** Of the directory: what all tenants have spent together. */
  shared: SpentStore
  /** Of the tenant's shard; undefined while that is not open, and then nothing of it is spent. */
  of: (tenant: string) => SpentStore | undefined
}

const SAVE_MS = 1000

/** One ledger over all shards of a process, so that a cap over several tenants is one cap. What a tenant spent is kept in its own shard. */
export function shardAccounts({ clock, log, shared, of }: ShardAccountsDeps) {
  let saving: ReturnType<typeof setTimeout> | undefined
  const saveSoon = () => {
    saving ??= setTimeout(() => void save(), SAVE_MS)
  }
  const ledger = budgetLedger(clock.now, { changed: saveSoon, monotonic: clock.monotonic })

  function storeOf({ key }: SpentRow): SpentStore | undefined {
    const tenant = accountTenant(key)
    return tenant === undefined ? shared : of(tenant)
  }

  async function add(store: SpentStore | undefined, rows: readonly SpentRow[]): Promise<void> {
    try {
      if (store === undefined) throw new Error('the shard of these accounts is not open')
      await store.add(rows, clock.now())
    } catch (error) {
      ledger.returnUnsaved(rows)
      log.error('spent budgets could not be stored; it is tried again', { error })
      saveSoon()
    }
  }

  async function save(): Promise<void> {
    clearTimeout(saving)
    saving = undefined
    const byStore = [...Map.groupBy(ledger.takeUnsaved(), storeOf)]
    await Promise.all(byStore.map(([store, rows]) => add(store, rows)))
  }

  return {
    budgets: ledger,
    /** Takes in what was spent before, once for each store. */
    async load(store: SpentStore): Promise<void> {
      ledger.load(await store.totals())
    },
    async close(): Promise<void> {
      await save()
      clearTimeout(saving)
    },
  }
}

const OF_A_TENANT = /^(?:(?:session|tenant)\/|route-tenant\/[^/]*\/)([A-Za-z0-9._-]{1,64})\//

/** Whose account a total of the ledger is; undefined for what all tenants spend together. */
export function accountTenant(key: string): string | undefined {
  return OF_A_TENANT.exec(key)?.[1]
}
