import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import type { Budget } from '../../shared/wire/runtime/budget.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { type Api, api } from './api.ts'
import { type NodeFixture, nodeFixture, TIMES, until } from './node-fixture.ts'

const CALL_TOKENS = 60

let folder: string
let control: Api
let nodes: NodeFixture[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-node-budgets-'))
  const masterKey = new Uint8Array(32).fill(7)
  control = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, tunnel: TIMES })
  nodes = []
})
afterEach(async () => {
  for (const node of nodes) await node.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

/** Calls a tool for ever: sixty tokens a call, and 110 µUSD. `hold` keeps each answer back until it is settled. */
function spender(calls: number[], hold: () => Promise<void> = async () => undefined): FoundModel {
  return {
    id: 'test/metered',
    prices: async () => (tokensIn, tokensOut) => tokensIn * 1000 + tokensOut * 2000,
    async ask({ maxOutputTokens }) {
      calls.push(maxOutputTokens)
      await hold()
      const tokensOut = Math.min(50, maxOutputTokens)
      const toolCalls = [{ id: `c${calls.length}`, name: 'wait', arguments: { seconds: 0 } }]
      const spent = { tokensIn: 10, tokensOut, costNano: 10_000 + tokensOut * 2000 }
      return { text: '', stop: 'tools', provider: 'test', model: 'test/metered', toolCalls, spent }
    },
  }
}

async function node(name: string, model: FoundModel): Promise<NodeFixture> {
  const made = await nodeFixture(control, folder, { name, models: { find: async () => model } })
  nodes.push(made)
  await online(made)
  return made
}

const online = ({ identity }: NodeFixture) =>
  until(async () => {
    const { status } = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${identity.nodeId}`)
    return status === 'online'
  }, 'the node is online')

async function agent(budget: object): Promise<void> {
  const manifest = { tools: ['wait'], limits: { maxOutputTokens: 200, maxTurns: 500 } }
  await control.json(201, 'POST', '/v1/agents', { name: 'spender', manifest })
  await control.json(200, 'PUT', '/v1/agents/spender/budget', budget)
}
const start = () => control.json<Run>(201, 'POST', '/v1/runs', { agentName: 'spender', input: { prompt: 'x' } })
const ended = (id: string) =>
  until(
    async () => {
      const run = await control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
      return isTerminal(run.status) && run
    },
    `run ${id} ends`,
    30_000,
  )
const today = async () => (await control.json<Budget>(200, 'GET', '/v1/agents/spender/budget')).today

describe('a limit of a day', () => {
  it.each([
    ['of tokens', { maxTokensPerDay: 3000 }],
    ['of cost', { maxCostUsdPerDay: 0.006 }],
  ])('%s is held before each call of runs on two nodes', async (_what, budget) => {
    const calls: number[] = []
    await node('one', spender(calls))
    await node('two', spender(calls))
    await agent(budget)
    const made = await Promise.all([start(), start(), start()])
    const runs = await Promise.all(made.map(({ id }) => ended(id)))
    for (const run of runs) expect(run).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    const { tokens, costUsd, reserved, uncertainTokens } = await today()
    console.log(`${calls.length} calls, ${tokens} tokens, ${costUsd} USD`, budget)
    expect(tokens).toBe(runs.reduce((sum, { tokensIn, tokensOut }) => sum + tokensIn + tokensOut, 0))
    expect(tokens).toBeLessThanOrEqual(3000)
    expect(costUsd).toBeLessThanOrEqual(0.006)
    // Most of it is used: what was held for calls that have ended is not held any more.
    expect(tokens).toBeGreaterThan(2000)
    expect({ ...reserved, uncertainTokens }).toEqual({ tokens: 0, costUsd: 0, uncertainTokens: 0 })
  })

  it('lets a node that cannot ask make no call, and go on when it can', async () => {
    const calls: number[] = []
    const gates: PromiseWithResolvers<void>[] = []
    const one = await node(
      'one',
      spender(calls, () => {
        const gate = Promise.withResolvers<void>()
        gates.push(gate)
        return gates.length > 3 ? Promise.resolve() : gate.promise
      }),
    )
    await agent({ maxTokensPerDay: 3000 })
    const { id } = await start()
    await until(async () => calls.length === 1, 'the first call')
    one.link.cut()
    gates[0]!.resolve()
    // Its answer is on record at the node, and the next call is asked for.
    await until(async () => {
      const { rows } = await one.db.execute('select count(*) from events')
      return Number(rows[0]![0]) > 2
    }, 'the second call is due')
    // For two heartbeats there is no answer.
    const streams = one.link.streams
    one.link.mend()
    one.link.meddle.toControl = frame => (frame.body.case === 'budgetAsk' ? [] : [frame])
    await until(async () => one.link.streams > streams, 'it has dialled again')
    await online(one)
    expect(calls).toHaveLength(1)
    // Each question comes three times, and is one.
    one.link.meddle.toControl = frame => (frame.body.case === 'budgetAsk' ? [frame, frame, frame] : [frame])
    await until(async () => calls.length === 2, 'the second call')
    const held = await control.db.execute("select count(*), sum(tokens) from reservations where step_id <> ''")
    expect(Number(held.rows[0]![0])).toBe(1)
    gates[1]!.resolve()
    await until(async () => calls.length === 3, 'the third call')
    gates[2]!.resolve()
    expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    const { tokens, uncertainTokens, reserved } = await today()
    expect({ tokens, uncertainTokens }).toEqual({ tokens: calls.length * CALL_TOKENS, uncertainTokens: 0 })
    expect(reserved.tokens).toBe(0)
  })

  it('counts a call that the death of its node cut off', async () => {
    const calls: number[] = []
    const one = await node(
      'one',
      spender(calls, () => (calls.length === 1 ? new Promise(() => undefined) : Promise.resolve())),
    )
    await agent({ maxTokensPerDay: 3000 })
    const { id } = await start()
    await until(async () => calls.length === 1, 'the first call')
    await one.kill()
    await one.restart()
    await online(one)
    const run = await ended(id)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    const { tokens, uncertainTokens } = await today()
    expect(uncertainTokens).toBeGreaterThan(200)
    expect(tokens).toBe((calls.length - 1) * CALL_TOKENS + uncertainTokens)
    expect(tokens).toBeLessThanOrEqual(3000)
  })

  it.each(['cancelled', 'failed'])(
    'counts the bound of a call that was cut off before a word of it (%s)',
    async how => {
      const asked = Promise.withResolvers<void>()
      await node('one', {
        ...spender([]),
        ask: (_, { metered, signal }) => {
          metered?.(async () => ({ spent: { tokensIn: 10, tokensOut: 0, costNano: 10_000 }, estimated: true }))
          asked.resolve()
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
      })
      const limits = { maxOutputTokens: 200, timeoutSeconds: how === 'failed' ? 1 : 60 }
      await control.json(201, 'POST', '/v1/agents', { name: 'spender', manifest: { limits } })
      await control.json(200, 'PUT', '/v1/agents/spender/budget', { maxTokensPerDay: 300 })
      const { id } = await start()
      await asked.promise
      const held = await today()
      if (how === 'cancelled') await control.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
      const run = await ended(id)
      expect(run.status).toBe(how)
      await until(async () => {
        const { rows } = await control.db.execute('select 1 from remote_runs where head_known = 1')
        return rows.length > 0
      }, 'its journal is sealed')
      const { tokens, uncertainTokens, reserved } = await today()
      expect(uncertainTokens).toBeGreaterThanOrEqual(200)
      expect(reserved.tokens).toBe(0)
      // What its node reports of the call is a part of the bound, also where the run had ended before.
      expect(tokens).toBe(held.reserved.tokens)
      const { tokensIn, uncertainTokens: ofRun } = await control.json<Run>(200, 'GET', `/v1/runs/${id}`)
      expect({ tokensIn, ofRun }).toEqual({ tokensIn: 10, ofRun: held.reserved.tokens - 10 })
      const { payload } = await control.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
      expect(payload).toMatchObject({ tokensIn: 10, status: how })
      // To stop early again and again passes no limit.
      await control.json(402, 'POST', '/v1/runs', { agentName: 'spender', input: { prompt: 'x' } })
    },
  )

  it.each([
    ['of tokens a day', { maxTokensPerDay: 60 }],
    ['of cost for a run', { maxCostUsdPerRun: 0.0001 }],
  ])(
    '%s that is set while a run is on its way stops it, also where another control plane took it',
    async (_, budget) => {
      const calls: number[] = []
      const gate = Promise.withResolvers<void>()
      await node(
        'one',
        spender(calls, () => (calls.length < 3 ? Promise.resolve() : gate.promise)),
      )
      await agent({})
      const { id } = await start()
      await until(async () => calls.length === 3, 'it calls')
      const masterKey = new Uint8Array(32).fill(7)
      const url = join(folder, 'control.db')
      const other = await api({ url, masterKey, embeddedNode: false, tunnel: TIMES })
      await other.json(200, 'PUT', '/v1/agents/spender/budget', budget)
      await other.close()
      await new Promise(resolve => setTimeout(resolve, 2 * TIMES.heartbeatMs))
      gate.resolve()
      expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
      expect(calls).toHaveLength(3)
    },
  )

  it('that is not there, or soft, costs a run on a node no question', async () => {
    const calls: number[] = []
    const one = await node('one', spender(calls))
    let asked = 0
    one.link.meddle.toControl = frame => {
      if (frame.body.case === 'budgetAsk') asked++
      return [frame]
    }
    await agent({ maxCostUsdPerRun: 0.002, maxTokensPerDay: 1, hardFail: false })
    const { id } = await start()
    await until(async () => calls.length > 5, 'it goes on')
    await control.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
    await ended(id)
    expect(asked).toBe(0)
  })
})

it('calls of a model without a price, of runs on a node, are said beside their cost', async () => {
  const unpriced: FoundModel = {
    id: 'test/unpriced',
    prices: async () => null,
    async ask({ messages }) {
      const isFirst = messages.every(({ role }) => role !== 'tool')
      const toolCalls = isFirst ? [{ id: 'c1', name: 'wait', arguments: { seconds: 0 } }] : []
      const spent = { tokensIn: 10, tokensOut: 5, costNano: 0 }
      const stop = isFirst ? 'tools' : 'end'
      return { text: 'done', stop, provider: 'test', model: 'test/unpriced', toolCalls, spent, unpriced: true }
    },
  }
  await node('one', unpriced)
  await agent({})
  const runs = await Promise.all([start(), start()])
  for (const { id } of runs) {
    expect(await ended(id)).toMatchObject({ status: 'succeeded', tokensOut: 10, costUsd: 0, unpricedCalls: 2 })
  }
  const usage = await control.json<UsageItem[]>(200, 'GET', '/v1/usage?groupBy=model')
  expect(usage).toMatchObject([{ model: 'test/unpriced', costUsd: 0, tokensOut: 20, unpricedCalls: 4 }])
})

it("a soft limit that a run on a node passes marks the run and sends an event, as does the share of a day's", async () => {
  await node('one', spender([]))
  await control.json(201, 'POST', '/v1/webhooks', { url: 'https://203.0.113.1/', events: [] })
  const manifest = { tools: ['wait'], limits: { maxOutputTokens: 200, maxTurns: 3 } }
  await control.json(201, 'POST', '/v1/agents', { name: 'spender', manifest })
  const budget = { maxCostUsdPerRun: 0.0002, maxCostUsdPerDay: 0.0004, hardFail: false, notifyAtPct: 50 }
  await control.json(200, 'PUT', '/v1/agents/spender/budget', budget)
  const { id, budgetExceeded } = await start()
  expect(budgetExceeded).toBe(false)
  await ended(id)
  await until(async () => (await ended(id)).budgetExceeded, 'it is marked')
  const told = await until(async () => {
    const { rows } = await control.db.execute("select type, data from webhook_deliveries where type like 'budget.%'")
    return rows.length > 1 && rows.map(({ type, data }) => ({ type, ...(JSON.parse(String(data)) as object) }))
  }, 'both events have come')
  expect(told).toHaveLength(2)
  expect(told).toContainEqual(expect.objectContaining({ type: 'budget.exceeded', runId: id, dimension: 'costPerRun' }))
  expect(told).toContainEqual(expect.objectContaining({ type: 'budget.threshold', dimension: 'costPerDay' }))
})
