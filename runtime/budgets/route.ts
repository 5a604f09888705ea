import type { InValue } from '@libsql/client/web'
import type { z } from 'zod'
import { invalidMember } from '../../shared/http/api-error.ts'
import { sameRecord } from '../../shared/http/validate.ts'
import { fromUsd, toUsd } from '../../shared/money/money.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { nanoSum, storableText } from '../../shared/sql/sql-values.ts'
import type { Budget, budgetPut } from '../../shared/wire/runtime/budget.ts'
import { budgetEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/budgets.ts'
import { runEndpoints } from '../../shared/wire/runtime/endpoints/runs.ts'
import { rangeProblem, type UsageItem } from '../../shared/wire/runtime/usage.ts'
import type { AgentStore } from '../agents/store.ts'
import { canonicalBody } from '../http/idempotent.ts'
import { type Operation, operation } from '../http/operation.ts'
import { notFound } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import type { DayOf } from './day.ts'
import type { Ledger } from './ledger.ts'
import type { Today } from './limits.ts'
import type { PriceChecks } from './price-checks.ts'
import { inWords } from './refusal.ts'
import type { BudgetRow, BudgetStore } from './store.ts'

export interface BudgetsDeps {
  db: Db
  store: BudgetStore
  ledger: Pick<Ledger, 'look'>
  prices: Pick<PriceChecks, 'ofBudget'>
  agents: Pick<AgentStore, 'getByName' | 'currentByName'>
  dayOf: DayOf
  now: () => Date
}

/** Budgets, what was used, and what a run would use (docs/spec/runtime.md §12). */
export function budgetOperations({ db, store, ledger, prices, agents, dayOf, now }: BudgetsDeps): Operation[] {
  const today = () => dayOf(now().getTime())

  async function agentOf(tenantId: string, name: string) {
    const agent = await agents.getByName(tenantId, name)
    if (!agent) throw notFound('agent', name)
    return agent
  }

  async function budgetOf(tenantId: string, name: string): Promise<BudgetRow> {
    const budget = await store.get((await agentOf(tenantId, name)).id)
    if (!budget) throw notFound('budget of agent', name)
    return budget
  }

  const withToday = async (row: Omit<BudgetRow, 'createdMs'>): Promise<Budget> =>
    toBudget(row, await store.today(row.agentId, today()))

  return [
    operation(endpoints.save, async ({ principal: { tenantId }, params, body }) => {
      const { id: agentId, name: agentName } = await agentOf(tenantId, params.name)
      await sameRecord(body, async () => {
        const known = await store.get(agentId)
        return known ? withToday(known) : { agentName }
      })
      const limits = toLimits(body)
      await prices.ofBudget(tenantId, agentName, limits)
      const row = { agentId, tenantId, agentName, ...limits, updatedMs: now().getTime() }
      await store.put(row)
      return { ...(await withToday(row)), status: 'saved' as const }
    }),
    operation(endpoints.get, async ({ principal, params }) =>
      withToday(await budgetOf(principal.tenantId, params.name)),
    ),
    operation(endpoints.remove, async ({ principal, params }) => {
      const { tenantId } = principal
      if (await store.remove(tenantId, params.name)) return
      await agentOf(tenantId, params.name)
      throw notFound('budget of agent', params.name)
    }),
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await store.list(call.principal.tenantId, page)
      const cut = page.cut(rows, ({ createdMs, agentId }) => ({ at: createdMs, id: agentId }))
      return Promise.all(cut.map(withToday))
    }),
    operation(endpoints.usage, async ({ principal: { tenantId }, query }) => {
      const { from, to, agentName, groupBy = 'day' } = query
      const last = to === undefined ? today() : dayOfText(to, dayOf)
      const first = from === undefined ? daysBefore(last, DEFAULT_DAYS - 1) : dayOfText(from, dayOf)
      const problem = rangeProblem(first, last)
      if (problem) throw invalidMember(problem.path, problem.message)
      return usage(db, { tenantId, from: first, to: last, agentName, groupBy })
    }),
    operation(runEndpoints.forecast, async ({ principal: { tenantId }, body: { agentName, input } }) => {
      const version = await agents.currentByName(tenantId, agentName)
      if (!version) throw notFound('agent', agentName)
      const { made, refusal } = await ledger.look({ ...version, tenantId, input: canonicalBody(input) })
      return {
        estimatedTokensIn: made.tokensIn,
        estimatedTokensOut: made.tokensOut,
        estimatedCostUsd: made.costNano === null ? null : toUsd(made.costNano),
        confidence: made.confidence,
        ...(made.unpriced !== undefined && { unpriced: true as const }),
        wouldExceedBudget: refusal !== undefined,
        agentName,
        model: made.model,
        basis: made.basis,
        sampleSize: made.sampleSize,
        ...(made.p90Nano !== undefined && { p90CostUsd: toUsd(made.p90Nano) }),
        ...(refusal && { blockReason: inWords(agentName, refusal) }),
      }
    }),
  ]
}

const DEFAULT_DAYS = 30

/** A day as it is; a moment as the day that it falls on in the deployment's zone. */
function dayOfText(text: string, dayOf: (ms: number) => string): string {
  return text.length === 10 ? text : dayOf(Date.parse(text))
}

function daysBefore(day: string, days: number): string {
  return new Date(Date.parse(day) - days * 86_400_000).toISOString().slice(0, 10)
}

interface UsageWanted {
  tenantId: string
  /** Days, both counted in. */
  from: string
  to: string
  agentName?: string | undefined
  groupBy: 'day' | 'agent' | 'model'
}

const GROUPS = { day: 'day', agent: 'agent_name', model: 'model' } as const
const MEMBERS = { day: 'day', agent: 'agentName', model: 'model' } as const

type Counted =
  | 'runs'
  | 'tokens_in'
  | 'tokens_out'
  | 'cost_nano'
  | 'uncertain_tokens'
  | 'uncertain_nano'
  | 'unpriced_calls'
type UsageRow = { name: string } & Record<Counted, number>

/** What was used, from counters that stay when runs are deleted: the work is by days and agents, not by runs. */
async function usage(db: Db, { tenantId, from, to, agentName, groupBy }: UsageWanted): Promise<UsageItem[]> {
  const column = GROUPS[groupBy]
  // A run has its model when it has ended; before that it is counted for its day and agent alone.
  const runs = groupBy === 'model' ? 'sum(ended)' : 'sum(runs)'
  const args: InValue[] = [tenantId, from, to, ...(agentName === undefined ? [] : [storableText(agentName)])]
  const found = await db.execute({
    sql: `select ${column} as name, ${runs} as runs, sum(tokens_in) as tokens_in, sum(tokens_out) as tokens_out, ${nanoSum('cost_nano')} as cost_nano,
      sum(uncertain_tokens) as uncertain_tokens, ${nanoSum('uncertain_nano')} as uncertain_nano, sum(unpriced_calls) as unpriced_calls from usage_days
      where tenant_id = ? and day between ? and ? ${agentName === undefined ? '' : 'and agent_name = ?'}
      ${groupBy === 'model' ? "and model <> ''" : ''} group by ${column} order by ${column}`,
    args,
  })
  return rowsOf<UsageRow>(found).map(row => ({
    [MEMBERS[groupBy]]: row.name,
    runs: row.runs,
    tokensIn: row.tokens_in,
    tokensOut: row.tokens_out,
    costUsd: toUsd(row.cost_nano),
    uncertainTokens: row.uncertain_tokens,
    uncertainCostUsd: toUsd(row.uncertain_nano),
    unpricedCalls: row.unpriced_calls,
  }))
}

const usdOrNull = (nano: number | null) => (nano === null ? null : toUsd(nano))
const nanoOrNull = (usd: number | null) => (usd === null ? null : fromUsd(usd))

function toBudget(row: Omit<BudgetRow, 'createdMs'>, today: Today): Budget {
  return {
    agentName: row.agentName,
    maxCostUsdPerDay: usdOrNull(row.costNanoDay),
    maxCostUsdPerRun: usdOrNull(row.costNanoRun),
    maxTokensPerDay: row.tokensDay,
    maxRunsPerDay: row.runsDay,
    hardFail: row.hardFail,
    notifyAtPct: row.notifyAtPct,
    toolLimits: row.toolLimits,
    today: {
      runs: today.runs,
      tokens: today.tokens,
      costUsd: toUsd(today.costNano),
      uncertainTokens: today.uncertainTokens,
      uncertainCostUsd: toUsd(today.uncertainNano),
      reserved: { tokens: today.heldTokens, costUsd: toUsd(today.heldNano) },
    },
    updatedAt: new Date(row.updatedMs).toISOString(),
  }
}

function toLimits(put: z.output<typeof budgetPut>) {
  return {
    costNanoDay: nanoOrNull(put.maxCostUsdPerDay),
    costNanoRun: nanoOrNull(put.maxCostUsdPerRun),
    tokensDay: put.maxTokensPerDay,
    runsDay: put.maxRunsPerDay,
    hardFail: put.hardFail,
    notifyAtPct: put.notifyAtPct,
    toolLimits: put.toolLimits,
  }
}
