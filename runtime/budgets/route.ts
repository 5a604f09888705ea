import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody, sameRecord } from '../../shared/http/validate.ts'
import { toUsd } from '../../shared/money/money.ts'
import { type Budget, type BudgetSaved, budgetPut } from '../../shared/wire/runtime/budget.ts'
import { pageQuery } from '../../shared/wire/runtime/conventions.ts'
import { type Forecast, forecastRequest, rangeProblem, usageQuery } from '../../shared/wire/runtime/usage.ts'
import { canonicalBody } from '../http/canonical-body.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import type { BudgetsDeps } from './deps.ts'
import { inWords } from './refusal.ts'
import type { BudgetRow } from './store.ts'
import { usage } from './usage.ts'
import { toBudget, toLimits } from './wire-form.ts'

/** Budgets, what was used, and what a run would use (docs/spec/runtime.md §12). */
export function budgetsRoute({ db, store, ledger, prices, agents, dayOf, now, maxBodyBytes }: BudgetsDeps) {
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

  return new Hono<RuntimeHttpEnv>()
    .put('/v1/agents/:name/budget', jsonBody(budgetPut, maxBodyBytes), async c => {
      const { tenantId } = c.get('principal')
      const { id: agentId, name: agentName } = await agentOf(tenantId, c.req.param('name'))
      const given = c.req.valid('json')
      await sameRecord(given, async () => {
        const known = await store.get(agentId)
        return known ? withToday(known) : { agentName }
      })
      const limits = toLimits(given)
      await prices.ofBudget(tenantId, agentName, limits)
      const row = { agentId, tenantId, agentName, ...limits, updatedMs: now().getTime() }
      await store.put(row)
      return c.json({ ...(await withToday(row)), status: 'saved' } satisfies BudgetSaved)
    })
    .get('/v1/agents/:name/budget', async c =>
      c.json(await withToday(await budgetOf(c.get('principal').tenantId, c.req.param('name')))),
    )
    .delete('/v1/agents/:name/budget', async c => {
      const { agentId, agentName } = await budgetOf(c.get('principal').tenantId, c.req.param('name'))
      if (!(await store.remove(agentId))) throw notFound('budget of agent', agentName)
      return c.body(null, 204)
    })
    .get('/v1/budgets', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const rows = page.cut(await store.list(c.get('principal').tenantId, page), row => ({
        ...{ at: row.createdMs, id: row.agentId },
      }))
      return c.json(await Promise.all(rows.map(withToday)))
    })
    .get('/v1/usage', async c => {
      const { from, to, agentName, groupBy = 'day' } = readQuery(c, usageQuery)
      const last = to === undefined ? today() : dayOfText(to, dayOf)
      const first = from === undefined ? daysBefore(last, DEFAULT_DAYS - 1) : dayOfText(from, dayOf)
      const problem = rangeProblem(first, last)
      if (problem) {
        throw new ApiError('validation_failed', `${problem.path}: ${problem.message}`, { details: [problem] })
      }
      const { tenantId } = c.get('principal')
      return c.json(await usage(db, { tenantId, from: first, to: last, agentName, groupBy }))
    })
    .post('/v1/runs/forecast', jsonBody(forecastRequest, maxBodyBytes), async c => {
      const { agentName, input } = c.req.valid('json')
      const { tenantId } = c.get('principal')
      const version = await agents.currentByName(tenantId, agentName)
      if (!version) throw notFound('agent', agentName)
      const { made, refusal } = await ledger.look({ ...version, tenantId, input: canonicalBody(input) })
      return c.json({
        ...{ estimatedTokensIn: made.tokensIn, estimatedTokensOut: made.tokensOut },
        ...{ estimatedCostUsd: made.costNano === null ? null : toUsd(made.costNano), confidence: made.confidence },
        ...(made.unpriced !== undefined && { unpriced: true }),
        ...{ wouldExceedBudget: refusal !== undefined, agentName, model: made.model },
        ...{ basis: made.basis, sampleSize: made.sampleSize },
        ...(made.p90Nano !== undefined && { p90CostUsd: toUsd(made.p90Nano) }),
        ...(refusal && { blockReason: inWords(agentName, refusal) }),
      } satisfies Forecast)
    })
}

const DEFAULT_DAYS = 30

/** A day as it is; a moment as the day that it falls on in the deployment's zone. */
function dayOfText(text: string, dayOf: (ms: number) => string): string {
  return text.length === 10 ? text : dayOf(Date.parse(text))
}

function daysBefore(day: string, days: number): string {
  return new Date(Date.parse(day) - days * 86_400_000).toISOString().slice(0, 10)
}
