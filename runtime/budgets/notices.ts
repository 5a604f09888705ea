import type { InStatement } from '@libsql/client/web'
import { enqueueEvent } from '../webhooks/enqueue.ts'
import { type Refusal, reachedLimits, type Today } from './limits.ts'
import { onWire } from './refusal.ts'
import type { BudgetRow } from './store.ts'

export interface NoticesDeps {
  write: (statements: InStatement[]) => Promise<unknown>
  newId: () => string
  now: () => Date
}

/** Tells the webhooks of a tenant what becomes of its budgets. */
export function budgetNotices({ write, newId, now }: NoticesDeps) {
  const told = new Set<string>()

  return {
    /** Once for each limit and day: the share of it that the budget names has been used. */
    async nearing(budget: BudgetRow, today: Today, day: string): Promise<void> {
      for (const { dimension, limit, used } of reachedLimits(budget, today, budget.notifyAtPct)) {
        const key = `${budget.agentId} ${day} ${dimension}`
        if (told.has(key)) continue
        const mark = newId()
        const { agentId, agentName, tenantId, notifyAtPct } = budget
        const noted = {
          sql: 'insert into budget_notices (agent_id, day, dimension, mark) values (?, ?, ?, ?) on conflict do nothing',
          args: [agentId, day, dimension, mark],
        }
        const announced = enqueueEvent(newId, {
          tenantId,
          type: 'budget.threshold',
          atMs: now().getTime(),
          data: { agentName, day, notifyAtPct, ...onWire({ dimension, limit, used }) },
          when: { sql: 'exists (select 1 from budget_notices where mark = ?)', args: [mark] },
        })
        try {
          await write([noted, announced])
        } catch {
          // The run that this is about is made already: an event that could not be queued now is queued with the next one.
          return
        }
        // Days go by; what is forgotten is asked of the store again.
        if (told.size > 10_000) told.clear()
        told.add(key)
      }
    },

    /** For the transaction in which a run passes a limit that stops nothing. */
    exceeded(budget: BudgetRow, runId: string, refusal: Refusal): InStatement {
      return enqueueEvent(newId, {
        tenantId: budget.tenantId,
        type: 'budget.exceeded',
        atMs: now().getTime(),
        data: { agentName: budget.agentName, runId, ...onWire(refusal) },
        when: { sql: 'exists (select 1 from runs where id = ? and budget_exceeded = 1)', args: [runId] },
      })
    },
  }
}

export type BudgetNotices = ReturnType<typeof budgetNotices>
