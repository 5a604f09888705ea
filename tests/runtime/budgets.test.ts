import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import type { Budget } from '../../shared/wire/runtime/budget.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Forecast, UsageItem } from '../../shared/wire/runtime/usage.ts'
import { eventually } from '../eventually.ts'
import { type Api, api } from './api.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** A model at 1 µUSD a token in and 2 out, that takes as many turns as the prompt says and writes as much as it may. */
function metered(calls: { maxOutputTokens: number }[], tokens = { in: 10, out: 50 }): FoundModel {
  return {
    id: 'test/metered',
    prices: async () => (tokensIn, tokensOut) => tokensIn * 1000 + tokensOut * 2000,
    async ask({ messages, maxOutputTokens }) {
      calls.push({ maxOutputTokens })
      const first = messages[0]
      const turns = Number(/turns=(\d+)/.exec(first?.role === 'user' ? first.text : '')?.[1] ?? 1)
      const tokensOut = Math.min(tokens.out, maxOutputTokens)
      const more = messages.length / 2 < turns - 1
      return {
        text: more ? '' : 'done',
        stop: more ? 'tools' : 'end',
        provider: 'test',
        model: 'test/metered',
        toolCalls: more ? [{ id: `c${messages.length}`, name: 'wait', arguments: { seconds: 0 } }] : [],
        spent: { tokensIn: tokens.in, tokensOut, costNano: tokens.in * 1000 + tokensOut * 2000 },
      }
    },
  }
}

async function started(budget: object | undefined, manifest: object = {}, tokens?: { in: number; out: number }) {
  const calls: { maxOutputTokens: number }[] = []
  const model = metered(calls, tokens)
  const on = await api({ models: { find: async () => model }, limits: { maxConcurrent: 64 } })
  open.push(on)
  await on.json(201, 'POST', '/v1/agents', { name: 'spender', manifest: { tools: ['wait'], ...manifest } })
  if (budget) await on.json(200, 'PUT', '/v1/agents/spender/budget', budget)
  return { ...on, calls }
}

const make = ({ call }: Pick<Api, 'call'>, prompt = 'turns=1') =>
  call('POST', '/v1/runs', { agentName: 'spender', input: { prompt } })

async function ended(on: Pick<Api, 'call' | 'json'>, id: string): Promise<Run> {
  await (await on.call('GET', `/v1/runs/${id}/events`)).text()
  return on.json<Run>(200, 'GET', `/v1/runs/${id}`)
}

const today = ({ json }: Pick<Api, 'json'>) => json<Budget>(200, 'GET', '/v1/agents/spender/budget')

describe('a budget', () => {
  it('is saved whole, read with the use of today, listed and removed', async () => {
    const on = await started(undefined)
    expect((await on.call('GET', '/v1/agents/spender/budget')).status).toBe(404)
    const saved = await on.json<Budget>(200, 'PUT', '/v1/agents/spender/budget', { maxCostUsdPerDay: 1.5 })
    expect(saved).toMatchObject({
      status: 'saved',
      agentName: 'spender',
      maxCostUsdPerDay: 1.5,
      maxRunsPerDay: null,
      hardFail: true,
      notifyAtPct: 80,
      toolLimits: {},
      today: { runs: 0, tokens: 0, costUsd: 0 },
    })
    await ended(on, ((await (await make(on)).json()) as Run).id)
    expect((await today(on)).today).toEqual({
      runs: 1,
      tokens: 60,
      costUsd: 0.00011,
      reserved: { tokens: 0, costUsd: 0 },
      uncertainTokens: 0,
      uncertainCostUsd: 0,
    })
    await on.json(200, 'PUT', '/v1/agents/spender/budget', { maxRunsPerDay: 5 })
    expect(await on.json<Budget[]>(200, 'GET', '/v1/budgets')).toMatchObject([
      { maxCostUsdPerDay: null, maxRunsPerDay: 5 },
    ])
    expect((await on.call('DELETE', '/v1/agents/spender/budget')).status).toBe(204)
    expect((await on.call('DELETE', '/v1/agents/spender/budget')).status).toBe(404)
    expect((await on.call('GET', '/v1/agents/nobody/budget')).status).toBe(404)
  })

  it.each([{ maxCostUsdPerDay: -1 }, { maxRunsPerDay: 1.5 }, { maxRunsPerDay: '5' }, { notifyAtPct: 0 }, { limit: 1 }])(
    'is refused as %j',
    async bad => {
      const on = await started(undefined)
      const answer = await on.call('PUT', '/v1/agents/spender/budget', bad)
      expect(answer.status).toBe(400)
      expect(await answer.text()).toContain(Object.keys(bad)[0])
    },
  )
})

describe('a hard limit', () => {
  it.each([
    ['runsPerDay', { maxRunsPerDay: 0 }, 0],
    ['costPerRun', { maxCostUsdPerRun: 0.00001 }, 0.00001],
    ['costPerDay', { maxCostUsdPerDay: 0.00001 }, 0.00001],
    ['tokensPerDay', { maxTokensPerDay: 20 }, 20],
    ['costPerDay', { maxCostUsdPerDay: 0 }, 0],
  ] as const)('refuses a run by %s: nothing is made and nobody is asked', async (dimension, budget, limit) => {
    const on = await started(budget)
    const answer = await make(on)
    expect(answer.status).toBe(402)
    expect(await answer.json()).toMatchObject({ code: 'budget_exceeded', dimension, limit, used: 0 })
    expect(await on.json(200, 'GET', '/v1/runs')).toEqual([])
    expect(on.calls).toEqual([])
    expect(((await on.db.execute('select count(*) from run_data')).rows[0] ?? [])[0]).toBe(0)
  })

  it('lets exactly ten of fifty through that come at once', async () => {
    const on = await started({ maxRunsPerDay: 10 })
    const answers = await Promise.all(Array.from({ length: 50 }, () => make(on)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter(status => status === 201)).toHaveLength(10)
    expect(statuses.filter(status => status === 402)).toHaveLength(40)
    expect((await today(on)).today.runs).toBe(10)
    expect(await on.json<Run[]>(200, 'GET', '/v1/runs')).toHaveLength(10)
  })

  it('stays with a name whose agent is deleted and made again, with what was used of it today', async () => {
    const on = await started({ maxRunsPerDay: 2 })
    await ended(on, ((await (await make(on)).json()) as Run).id)
    await on.json(204, 'DELETE', '/v1/agents/spender')
    expect(await on.json(200, 'GET', '/v1/budgets')).toEqual([])
    const again = await on.json<{ warnings: string[] }>(201, 'POST', '/v1/agents', { name: 'spender' })
    expect(again.warnings).toEqual([expect.stringContaining('the budget of the agent that had this name before')])
    expect(await today(on)).toMatchObject({ maxRunsPerDay: 2, today: { runs: 1, tokens: 60, costUsd: 0.00011 } })
    expect((await make(on)).status).toBe(201)
    expect((await make(on)).status).toBe(402)
    await on.json(204, 'DELETE', '/v1/agents/spender')
    await on.json(201, 'POST', '/v1/agents', { name: 'spender' })
    expect((await make(on)).status).toBe(402)
    expect(await on.json<unknown[]>(200, 'GET', '/v1/budgets')).toHaveLength(1)
  })

  it('of a deleted agent is removed by its name, and left to no other one', async () => {
    const on = await started({ maxRunsPerDay: 0 })
    await on.json(204, 'DELETE', '/v1/agents/spender')
    await on.json(201, 'POST', '/v1/agents', { name: 'other' })
    expect((await on.call('GET', '/v1/agents/other/budget')).status).toBe(404)
    await on.json(204, 'DELETE', '/v1/agents/spender/budget')
    expect((await on.call('DELETE', '/v1/agents/spender/budget')).status).toBe(404)
    const again = await on.json<{ warnings: string[] }>(201, 'POST', '/v1/agents', { name: 'spender' })
    expect(again.warnings).toEqual([])
    expect((await make(on)).status).toBe(201)
  })

  it('does not keep a refused call under its idempotency key', async () => {
    const on = await started({ maxRunsPerDay: 1 })
    const body = { agentName: 'spender', input: {} }
    const keyed = (key: string) => on.call('POST', '/v1/runs', body, { 'idempotency-key': key })
    expect((await keyed('a')).status).toBe(201)
    expect((await keyed('b')).status).toBe(402)
    await on.json(200, 'PUT', '/v1/agents/spender/budget', { maxRunsPerDay: 2 })
    expect((await keyed('b')).status).toBe(201)
    expect((await keyed('a')).status).toBe(201)
    expect((await today(on)).today.runs).toBe(2)
  })

  it('is never passed by two hundred calls that race for it', async () => {
    const limit = 0.02
    const on = await started({ maxCostUsdPerDay: limit }, { limits: { maxOutputTokens: 50, maxTurns: 20 } })
    const made = await Promise.all(Array.from({ length: 40 }, () => make(on, 'turns=5')))
    const runs = await Promise.all(
      made.filter(({ status }) => status === 201).map(async one => ended(on, ((await one.json()) as Run).id)),
    )
    const spent = (await today(on)).today
    expect(spent.costUsd).toBeLessThanOrEqual(limit)
    expect(spent.reserved).toEqual({ tokens: 0, costUsd: 0 })
    expect(runs.reduce((sum, run) => sum + run.costUsd, 0)).toBeCloseTo(spent.costUsd, 9)
    console.log(`${on.calls.length} calls of ${runs.length} runs spent ${spent.costUsd} of ${limit} USD`)
    expect(on.calls.length).toBeGreaterThan(50)
    expect(runs.some(run => run.error?.code === 'budget_exceeded')).toBe(true)
  })

  it('ends a run before the call that could pass it, and cuts the answer of the one that just fits', async () => {
    const on = await started({ maxCostUsdPerRun: 0.0006 }, { limits: { maxOutputTokens: 100, maxTurns: 20 } })
    const { id } = (await (await make(on, 'turns=9')).json()) as Run
    const run = await ended(on, id)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    expect(run.costUsd).toBeLessThanOrEqual(0.0006)
    expect(on.calls.length).toBeGreaterThan(1)
    expect(Math.min(...on.calls.map(call => call.maxOutputTokens))).toBeLessThan(100)
    expect(Math.min(...on.calls.map(call => call.maxOutputTokens))).toBeGreaterThanOrEqual(16)
    expect((await today(on)).today.reserved).toEqual({ tokens: 0, costUsd: 0 })
  })

  it('counts a call that was interrupted as spent, and asks again only within what is left', async () => {
    for (const [limit, again] of [
      [0.001, true],
      [0.00015, false],
    ] as const) {
      const folder = await mkdtemp(join(tmpdir(), 'waybill-budget-'))
      const url = join(folder, 'waybill.db')
      const asked = Promise.withResolvers<void>()
      const first = await api({
        url,
        models: {
          find: async () => ({
            ...metered([]),
            ask() {
              asked.resolve()
              return new Promise(() => undefined)
            },
          }),
        },
      })
      await first.json(201, 'POST', '/v1/agents', { name: 'spender', manifest: { limits: { maxOutputTokens: 50 } } })
      await first.json(200, 'PUT', '/v1/agents/spender/budget', { maxCostUsdPerDay: limit })
      const { id } = (await (await make(first)).json()) as Run
      await asked.promise
      await first.close()

      const calls: { maxOutputTokens: number }[] = []
      const second = await api({ url, models: { find: async () => metered(calls) } })
      open.push(second)
      const run = await ended(second, id)
      expect(calls).toHaveLength(again ? 1 : 0)
      expect(run).toMatchObject(again ? { status: 'succeeded' } : { error: { code: 'budget_exceeded' } })
      const { costUsd, reserved } = (await today(second)).today
      expect(costUsd).toBeGreaterThan(run.costUsd + 0.0001)
      expect(costUsd).toBeLessThanOrEqual(limit)
      expect(reserved.costUsd).toBe(0)
    }
  })

  it.each(['cancel', 'timeout'])('counts a call that says nothing of what it used as uncertain (%s)', async how => {
    const asked = Promise.withResolvers<void>()
    const ask: FoundModel['ask'] = () => {
      asked.resolve()
      return new Promise(() => undefined)
    }
    const on = await api({ models: { find: async () => ({ ...metered([]), ask }) } })
    open.push(on)
    const limits = { maxOutputTokens: 50, timeoutSeconds: how === 'timeout' ? 1 : 60 }
    await on.json(201, 'POST', '/v1/agents', { name: 'spender', manifest: { limits } })
    await on.json(200, 'PUT', '/v1/agents/spender/budget', { maxTokensPerDay: 1000 })
    const { id } = (await (await make(on)).json()) as Run
    await asked.promise
    if (how === 'cancel') await on.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
    const run = await ended(on, id)
    expect(run.uncertainTokens).toBeGreaterThan(50)
    expect((await today(on)).today).toMatchObject({
      tokens: run.uncertainTokens,
      uncertainTokens: run.uncertainTokens,
      reserved: { tokens: 0, costUsd: 0 },
    })
  })

  it('counts what an agent does for another', async () => {
    const on = await started({ maxRunsPerDay: 0 })
    await on.json(201, 'POST', '/v1/agents', { name: 'boss', manifest: { subAgents: [{ name: 'spender' }] } })
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'boss', input: {} })
    await ended(on, id)
    expect((await make(on)).status).toBe(402)
  })
})

describe('a webhook', () => {
  it('hears once a day that a limit is near, and of each run that passes a soft one', async () => {
    const on = await started({ maxRunsPerDay: 4, notifyAtPct: 50, hardFail: false })
    const sql =
      "insert into webhooks (id, tenant_id, url, events, enabled, sealed_secret, created_ms, updated_ms) values ('w', 'default', 'https://a.example', '[]', 1, 'x', 0, 0)"
    await on.db.execute(sql)
    for (let n = 0; n < 5; n++) await ended(on, ((await (await make(on)).json()) as Run).id)
    const { rows } = await on.db.execute(
      "select type, data from webhook_deliveries where type like 'budget.%' order by created_ms",
    )
    const heard = rows.map(row => [row.type, JSON.parse(String(row.data)) as object])
    expect(heard).toMatchObject([
      ['budget.threshold', { agentName: 'spender', dimension: 'runsPerDay', limit: 4, used: 2, notifyAtPct: 50 }],
      ['budget.exceeded', { agentName: 'spender', dimension: 'runsPerDay', limit: 4, used: 4 }],
    ])
  })
})

describe('a soft limit', () => {
  it('refuses nothing and says that it was passed', async () => {
    const on = await started({ maxRunsPerDay: 1, hardFail: false })
    const runs = await Promise.all([make(on), make(on)].map(async one => (await (await one).json()) as Run))
    const flags = await Promise.all(runs.map(async ({ id }) => (await ended(on, id)).budgetExceeded))
    expect(flags.sort()).toEqual([false, true])
    const dear = await started({ maxCostUsdPerRun: 0.0002, hardFail: false }, { limits: { maxOutputTokens: 50 } })
    const { id } = (await (await make(dear, 'turns=4')).json()) as Run
    expect(await ended(dear, id)).toMatchObject({ status: 'succeeded', budgetExceeded: true })
  })

  it.each<[string, object]>([
    ['of the cost of a run', { maxCostUsdPerRun: 0.004 }],
    ['of the cost of a day', { maxCostUsdPerDay: 0.004 }],
    ['of the tokens of a day', { maxTokensPerDay: 2000 }],
  ])('%s is passed by what an answer took, though the call seemed to fit', async (_, limit) => {
    const used = { in: 10, out: 3000 }
    const on = await started({ ...limit, hardFail: false }, { limits: { maxOutputTokens: 4000 } }, used)
    const { id } = (await (await make(on)).json()) as Run
    expect(await ended(on, id)).toMatchObject({ status: 'succeeded', tokensOut: 3000, budgetExceeded: true })
    const enough = await started(
      { ...limit, hardFail: false },
      { limits: { maxOutputTokens: 4000 } },
      { in: 10, out: 50 },
    )
    const small = (await (await make(enough)).json()) as Run
    expect(await ended(enough, small.id)).toMatchObject({ tokensOut: 50, budgetExceeded: false })
  })
})

const NONE = { maxRunsPerDay: null, maxTokensPerDay: null, maxCostUsdPerDay: null, maxCostUsdPerRun: null }

describe('a forecast', () => {
  const ask = (on: Pick<Api, 'json'>) =>
    on.json<Forecast>(200, 'POST', '/v1/runs/forecast', { agentName: 'spender', input: { prompt: 'turns=2' } })

  it('is a guess without history, and within a tenth after twenty equal runs', async () => {
    const on = await started(undefined)
    expect(await ask(on)).toMatchObject({ basis: 'manifest', sampleSize: 0, confidence: 0.1, wouldExceedBudget: false })
    for (let n = 0; n < 20; n++) await ended(on, ((await (await make(on, 'turns=2')).json()) as Run).id)
    const made = await ask(on)
    expect(made).toMatchObject({ basis: 'history', sampleSize: 20, estimatedCostUsd: 0.00022, p90CostUsd: 0.00022 })
    expect(made.confidence).toBeGreaterThan(0.6)
    expect((await on.call('POST', '/v1/runs/forecast', { agentName: 'nobody' })).status).toBe(404)
  })

  it('agrees with the next run, whatever the limits', async () => {
    const on = await started({})
    const limits = fc.record({
      maxRunsPerDay: fc.option(fc.nat(3)),
      maxTokensPerDay: fc.option(fc.nat(2000)),
      maxCostUsdPerDay: fc.option(fc.nat(20).map(n => n / 10_000)),
      maxCostUsdPerRun: fc.option(fc.nat(20).map(n => n / 10_000)),
    })
    const seen = new Set<boolean>()
    await fc.assert(
      fc.asyncProperty(limits, async budget => {
        await on.json(200, 'PUT', '/v1/agents/spender/budget', budget)
        const { wouldExceedBudget, blockReason } = await ask(on)
        seen.add(wouldExceedBudget)
        expect(blockReason !== undefined).toBe(wouldExceedBudget)
        const answer = await make(on, 'turns=2')
        expect(answer.status).toBe(wouldExceedBudget ? 402 : 201)
        if (answer.status === 201) await ended(on, ((await answer.json()) as Run).id)
      }),
      { numRuns: 60, examples: [[NONE], [{ ...NONE, maxRunsPerDay: 0 }]] },
    )
    expect(seen.size).toBe(2)
  })
})

describe('a threshold', () => {
  it('of cost or tokens is told when a call crosses it, not when the next run is made', async () => {
    const on = await started({ maxTokensPerDay: 10_000, notifyAtPct: 1 })
    const notices = async () =>
      (await on.db.execute('select dimension from budget_notices')).rows.map(row => String(row.dimension))
    expect(await notices()).toEqual([])
    await ended(on, ((await (await make(on, 'turns=2')).json()) as Run).id)
    await eventually(async () => expect(await notices()).toEqual(['tokensPerDay']))
  })
})

describe('usage', () => {
  it('adds up by day, agent and model, and stays when runs are deleted', async () => {
    const on = await started(undefined)
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.push((await ended(on, ((await (await make(on)).json()) as Run).id)).id)
    const total = {
      runs: 3,
      tokensIn: 30,
      tokensOut: 150,
      costUsd: 0.00033,
      uncertainTokens: 0,
      uncertainCostUsd: 0,
      unpricedCalls: 0,
    }
    const day = new Date().toISOString().slice(0, 10)
    const read = () =>
      Promise.all(['day', 'agent', 'model'].map(by => on.json<UsageItem[]>(200, 'GET', `/v1/usage?groupBy=${by}`)))
    const expected = [[{ day, ...total }], [{ agentName: 'spender', ...total }], [{ model: 'test/metered', ...total }]]
    expect(await read()).toEqual(expected)
    for (const id of ids) expect((await on.call('DELETE', `/v1/runs/${id}`)).status).toBe(204)
    expect(await read()).toEqual(expected)
    expect(await on.json(200, 'GET', '/v1/usage?agentName=nobody')).toEqual([])
    for (const bad of ['from=2026-02-01&to=2026-01-01', 'from=2020-01-01&to=2026-01-01', 'from=x', 'groupBy=hour']) {
      expect((await on.call('GET', `/v1/usage?${bad}`)).status, bad).toBe(400)
    }
  })
})
