import type { Db } from '../../shared/sql/db.ts'
import type { Budgets } from '../budget/ledger.ts'
import { type Answering, type OtherProcesses, routerPages } from '../processes.ts'

export interface ShardPeersDeps {
  /** Kept once for all shards. */
  budgets: Budgets
  stores: () => readonly Db[]
  answering: () => readonly Db[]
}

/** What the routers of several shards in one process do for each other. */
export function shardPeers({ budgets, stores, answering }: ShardPeersDeps) {
  const members = new Map<string, Answering>()

  async function first<T>(those: readonly Answering[], ask: (one: Answering) => Promise<T | undefined>) {
    for (const one of those) {
      const found = await ask(one)
      if (found !== undefined) return found
    }
    return undefined
  }

  return {
    /** What the router of one shard is made with. */
    of(name: string): OtherProcesses {
      const others = () => [...members].flatMap(([other, one]) => (other === name ? [] : [one]))
      const all = <T>(ask: (one: Answering) => Promise<T>) => Promise.all(others().map(ask))
      return {
        budgets,
        held: own => own,
        // The records of a tenant are made here.
        find: async (id, tenant) => (tenant === undefined ? first(others(), one => one.find(id)) : undefined),
        made: async () => void (await all(one => one.made())),
        page: async own => routerPages.mergePages([own, ...(await all(one => one.page()))]),
        last: () => undefined,
        // A config that cannot be used is in the log.
        reloaded: async () => void (await all(one => one.reload().catch(() => undefined))),
        shards: {
          stores,
          answering,
          calibration: async () => (await all(one => one.calibration())).flat(),
          submit: report => first(others(), one => one.submit(report)),
        },
        answer: given => void members.set(name, given),
      }
    },
  }
}
