import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import type { RuntimeOptions } from '../../runtime/options.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { type Api, api } from '../runtime/api.ts'

const here = await sqldAvailable()
const MINUTES = 60_000

describe.runIf(here)('control planes whose clocks differ by minutes', () => {
  let sqld: Sqld
  const open: Api[] = []
  beforeAll(async () => {
    sqld = await startSqld()
  }, 60_000)
  afterEach(async () => {
    for (const one of open.splice(0)) await one.close()
  })
  afterAll(() => sqld?.stop())

  const asked: string[] = []
  const slow: FoundModel = {
    id: 'test/slow',
    prices: async () => () => 1,
    async ask({ messages }) {
      const last = messages.findLast(({ role }) => role === 'user')
      asked.push(last?.role === 'user' ? last.text : '')
      await new Promise(resolve => setTimeout(resolve, 3000))
      const spent = { tokensIn: 1, tokensOut: 1, costNano: 2 }
      return { text: 'done', toolCalls: [], stop: 'end', provider: 'test', model: 'test/slow', spent }
    },
  }
  /** Its machine's clock is ahead by what `ahead` says at the moment. */
  async function plane(ahead: number | (() => number), options: Partial<RuntimeOptions> = {}): Promise<Api> {
    const aheadMs = typeof ahead === 'number' ? () => ahead : ahead
    const made = await api({
      url: sqld.primaryUrl,
      owner: `plane-${open.length}`,
      clock: { ...systemClock, now: () => new Date(Date.now() + aheadMs()) },
      limits: { recoveryMs: 500 },
      ...options,
    })
    open.push(made)
    return made
  }
  const withSlow = { models: { find: async () => slow } }

  it.each([
    ['ahead', 0, 5 * MINUTES],
    ['behind', -5 * MINUTES, 0],
  ])('leave each other the runs that they execute: %s', async (name, ofFirst, ofSecond) => {
    const first = await plane(ofFirst, withSlow)
    await first.call('POST', '/v1/agents', { name: 'worker', manifest: {} })
    const { id } = await first.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: name } })
    await expect.poll(() => asked.filter(text => text === name)).toHaveLength(1)
    // It looks for what is due when it starts.
    const second = await plane(ofSecond, withSlow)
    await expect
      .poll(async () => isTerminal((await second.json<Run>(200, 'GET', `/v1/runs/${id}`)).status), { timeout: 15_000 })
      .toBe(true)
    expect(await first.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'succeeded' })
    expect(asked.filter(text => text === name)).toHaveLength(1)
  })
  /** What is due in some minutes: a question, a pause and a window of a schedule. */
  async function dueLater(on: Api) {
    const manifest = { model: 'demo/echo', tools: ['wait', 'ask_human'], approvals: { expiresMinutes: 3 } }
    await on.call('POST', '/v1/agents', { name: 'waiter', manifest })
    const start = (prompt: string) =>
      on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'waiter', input: { prompt: `/call ${prompt}` } })
    const ids = [(await start('ask_human {"prompt":"May I?"}')).id, (await start('wait {"seconds":180}')).id]
    const soon = new Date(Date.now() + 3 * MINUTES)
    const cronExpr = `${soon.getUTCMinutes()} ${soon.getUTCHours()} * * *`
    const window = await on.json<Schedule>(201, 'POST', '/v1/schedules', { agentName: 'waiter', cronExpr })
    const look = async () => ({
      runs: await Promise.all(ids.map(async id => (await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).status)),
      window: (await on.json<Schedule>(200, 'GET', `/v1/schedules/${window.id}`)).nextFireAt,
      fired: (await on.json<Schedule>(200, 'GET', `/v1/schedules/${window.id}`)).lastFiredAt,
    })
    // A run that pauses counts as running.
    await expect.poll(async () => (await look()).runs).toEqual(['waiting', 'running'])
    return { look, before: await look() }
  }

  const LOOKS_MS = 3000
  const looks = () => new Promise(resolve => setTimeout(resolve, LOOKS_MS))

  it('end, wake and fire nothing of each other before its time', async () => {
    const { look, before } = await dueLater(await plane(0))
    await plane(5 * MINUTES)
    await looks()
    expect(await look()).toEqual(before)
  })

  it('go by no clock that jumps while they live', async () => {
    let ahead = 0
    const on = await plane(() => ahead)
    const { look, before } = await dueLater(on)
    ahead = 5 * MINUTES
    await looks()
    expect(await look()).toEqual(before)
    const run = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'waiter', input: { prompt: 'hi' } })
    expect(Math.abs(Date.parse(run.createdAt) - Date.now())).toBeLessThan(MINUTES)
  })

  it('execute at once what one made whose clock is behind', async () => {
    const on = await plane(-5 * MINUTES)
    await on.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo', tools: ['wait'] } })
    const prompt = '/call wait {"seconds":1}'
    const began = performance.now()
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input: { prompt } })
    await expect.poll(async () => (await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).status).toBe('succeeded')
    expect(performance.now() - began).toBeLessThan(10_000)
  })
})
