import { afterEach, describe, expect, it } from 'vitest'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** Ten cents for each call. The boss calls as many helpers at once as its prompt says, and then once more, and ends. */
function model(calls: string[], bursts: number): FoundModel {
  return {
    id: 'test/m',
    prices: async () => (_tokensIn, tokensOut) => tokensOut * 1_000_000,
    async ask({ system, messages }) {
      calls.push(system)
      const first = messages[0]
      const children = Number(/children=(\d+)/.exec(first?.role === 'user' ? first.text : '')?.[1] ?? 0)
      const asked = messages.filter(({ role }) => role === 'assistant').length
      const more = children > 0 && asked < bursts
      const toolCalls = more
        ? Array.from({ length: children }, (_, at) => ({
            id: `c${asked}-${at}`,
            name: system === 'boss' ? 'agent__helper' : 'agent__leaf',
            arguments: { prompt: system === 'boss' && /deep/.test(JSON.stringify(first)) ? 'children=1' : 'work' },
          }))
        : []
      // What is said is written after a while, so that calls are open at the same time.
      await new Promise(resolve => setTimeout(resolve, 5))
      return {
        text: more ? '' : 'done',
        stop: more ? 'tools' : 'end',
        provider: 'test',
        model: 'test/m',
        toolCalls,
        spent: { tokensIn: 10, tokensOut: 100, costNano: 100_000_000 },
      }
    },
  }
}

async function fixture(bursts = 1, helperBudget?: object) {
  const calls: string[] = []
  const found = model(calls, bursts)
  const on = await api({ models: { find: async () => found }, limits: { maxConcurrent: 64 } })
  open.push(on)
  const limits = { maxOutputTokens: 100 }
  for (const [name, subAgents] of [
    ['leaf', []],
    ['helper', [{ name: 'leaf' }]],
    ['boss', [{ name: 'helper' }]],
  ] as const) {
    await on.json(201, 'POST', '/v1/agents', { name, manifest: { systemPrompt: name, subAgents, limits } })
  }
  if (helperBudget) await on.json(200, 'PUT', '/v1/agents/helper/budget', helperBudget)
  return { ...on, calls }
}

async function ran(on: Api, prompt: string): Promise<Run> {
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'boss', input: { prompt } })
  await (await on.call('GET', `/v1/runs/${id}/events`)).text()
  return on.json<Run>(200, 'GET', `/v1/runs/${id}`)
}

describe('the limit of a run', () => {
  it.each([
    ['where they have no budget', undefined],
    ['where they have one of their own', { maxCostUsdPerRun: 100 }],
    ['where they have a soft one', { maxCostUsdPerRun: 0.01, hardFail: false }],
  ])('holds for the runs that it calls, many at once (%s)', async (_what, helperBudget) => {
    const on = await fixture(3, helperBudget)
    await on.json(200, 'PUT', '/v1/agents/boss/budget', { maxCostUsdPerRun: 1 })
    const run = await ran(on, 'children=8')
    const children = await on.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${run.id}`)
    const spent = [run, ...children].reduce((sum, { costUsd }) => sum + costUsd, 0)
    console.log(`${on.calls.length} calls, ${spent} of 1 USD, the run itself ${run.costUsd}, ended ${run.error?.code}`)
    expect(spent).toBeLessThanOrEqual(1.000001)
    expect(on.calls).toHaveLength(10)
    expect(run.treeCostUsd).toBeCloseTo(spent, 9)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    const stopped = children.filter(({ error }) => error?.code === 'budget_exceeded')
    expect(stopped.length).toBeGreaterThan(0)
    const one = await on.json<Run>(200, 'GET', `/v1/runs/${stopped[0]!.id}`)
    expect(one.error?.message).toMatch(/the budget of boss is 1 USD a run/)
  })

  it('counts what a deleted run may have cost besides, because a crash cut its call off', async () => {
    const on = await fixture()
    const run = await ran(on, 'children=1')
    const [helper] = await on.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${run.id}`)
    const sql = 'update runs set uncertain_nano = 300000000, uncertain_tokens = 30 where id = ?'
    await on.db.execute({ sql, args: [helper!.id] })
    expect((await on.call('DELETE', `/v1/runs/${helper!.id}`)).status).toBe(204)
    const after = await on.json<Run>(200, 'GET', `/v1/runs/${run.id}`)
    expect(after).toMatchObject({ uncertainCostUsd: 0.3, uncertainTokens: 30 })
    expect(after.treeCostUsd).toBeCloseTo(run.treeCostUsd!, 9)
  })

  it('holds however deep they are, and a run that is deleted stays in the total', async () => {
    const on = await fixture(2)
    const run = await ran(on, 'children=2 deep')
    // Itself three times, four helpers three times each, eight leaves.
    const [helper] = await on.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${run.id}`)
    const leaves = await on.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${helper!.id}`)
    expect(leaves.length).toBeGreaterThan(0)
    expect(helper!.treeCostUsd).toBeCloseTo(helper!.costUsd + leaves.length * 0.1, 9)
    expect(run.treeCostUsd).toBeCloseTo(on.calls.length * 0.1, 9)
    expect(run.costUsd).toBeLessThan(run.treeCostUsd!)
    expect((await on.call('DELETE', `/v1/runs/${helper!.id}`)).status).toBe(204)
    expect((await on.json<Run>(200, 'GET', `/v1/runs/${run.id}`)).treeCostUsd).toBeCloseTo(run.treeCostUsd!, 9)

    await on.json(200, 'PUT', '/v1/agents/boss/budget', { maxCostUsdPerRun: 0.5 })
    const calls = on.calls.length
    const limited = await ran(on, 'children=2 deep')
    expect(on.calls.length - calls).toBe(5)
    expect(limited).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    expect(limited.treeCostUsd).toBeCloseTo(0.5, 9)
  })
})
