import type { RunObserver } from '../execution/engine-deps.ts'
import type { Claimed } from '../execution/lease-store.ts'
import type { DayOf } from './day.ts'
import type { BudgetNotices } from './notices.ts'
import type { BudgetStore } from './store.ts'

export interface SpendingDeps {
  store: Pick<BudgetStore, 'get' | 'today'>
  notices: Pick<BudgetNotices, 'nearing'>
  /** A run elsewhere has used something under a soft budget. */
  noted: (run: RunOfNode, day: string) => Promise<void>
  dayOf: DayOf
  now: () => Date
  failed: (error: unknown) => void
}

/** A run on a node. */
export type RunOfNode = Pick<Claimed, 'id' | 'agentId' | 'agentName' | 'depth'>

/** What an agent spends within this time is looked at once. */
const GATHER_MS = 100

/** Looks at an agent's budget after its runs have spent something, so that a crossed threshold is reported. */
export function spending({
  store,
  notices,
  noted,
  dayOf,
  now,
  failed,
}: SpendingDeps): RunObserver & { remote(run: RunOfNode): void; close(): Promise<void> } {
  const remote = new Map<string, Map<string, RunOfNode>>()
  const waiting = new Map<string, ReturnType<typeof setTimeout>>()
  const looking = new Set<Promise<void>>()

  async function look(agentId: string): Promise<void> {
    const runs = remote.get(agentId)
    remote.delete(agentId)
    const budget = await store.get(agentId)
    if (!budget) return
    const day = dayOf(now().getTime())
    await notices.nearing(budget, await store.today(agentId, day), day)
    if (runs === undefined || budget.hardFail) return
    for (const run of runs.values()) await noted(run, day)
  }

  function later(agentId: string): void {
    if (waiting.has(agentId)) return
    waiting.set(
      agentId,
      setTimeout(() => begin(agentId), GATHER_MS),
    )
  }

  function begin(agentId: string): void {
    clearTimeout(waiting.get(agentId))
    waiting.delete(agentId)
    const one = look(agentId)
      .catch(failed)
      .finally(() => looking.delete(one))
    looking.add(one)
  }

  return {
    kept({ agentId }, entries) {
      if (waiting.has(agentId)) return
      if (entries.some(({ meta }) => (meta.tokensIn ?? 0) + (meta.tokensOut ?? 0) > 0)) later(agentId)
    },

    /** What a run on a node has used is stored. */
    remote(run) {
      const runs = remote.get(run.agentId) ?? new Map<string, RunOfNode>()
      remote.set(run.agentId, runs.set(run.id, run))
      later(run.agentId)
    },

    ended: () => undefined,
    async close() {
      for (const agentId of [...waiting.keys()]) begin(agentId)
      await Promise.all(looking)
    },
  }
}
