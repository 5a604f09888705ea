import type { RunObserver } from '../execution/engine-deps.ts'
import type { DayOf } from './day.ts'
import type { BudgetNotices } from './notices.ts'
import type { BudgetStore } from './store.ts'

export interface SpendingDeps {
  store: Pick<BudgetStore, 'get' | 'today'>
  notices: Pick<BudgetNotices, 'nearing'>
  dayOf: DayOf
  now: () => Date
  failed: (error: unknown) => void
}

/** What an agent spends within this time is looked at once. */
const GATHER_MS = 100

/** Looks at an agent's budget after its runs have spent something, so that a crossed threshold is reported. */
export function spending({
  store,
  notices,
  dayOf,
  now,
  failed,
}: SpendingDeps): RunObserver & { close(): Promise<void> } {
  const waiting = new Map<string, ReturnType<typeof setTimeout>>()
  const looking = new Set<Promise<void>>()

  async function look(agentId: string): Promise<void> {
    const budget = await store.get(agentId)
    if (!budget) return
    const day = dayOf(now().getTime())
    await notices.nearing(budget, await store.today(agentId, day), day)
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
      const spent = entries.some(({ meta }) => (meta.tokensIn ?? 0) + (meta.tokensOut ?? 0) > 0)
      if (spent)
        waiting.set(
          agentId,
          setTimeout(() => begin(agentId), GATHER_MS),
        )
    },
    ended: () => undefined,
    async close() {
      for (const agentId of [...waiting.keys()]) begin(agentId)
      await Promise.all(looking)
    },
  }
}
