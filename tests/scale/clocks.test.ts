import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
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
  afterAll(async () => {
    for (const one of open) await one.close()
    await sqld?.stop()
  })

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
  async function plane(aheadMs: number): Promise<Api> {
    const made = await api({
      url: sqld.primaryUrl,
      owner: `plane-${open.length}`,
      clock: { ...systemClock, now: () => new Date(Date.now() + aheadMs) },
      models: { find: async () => slow },
    })
    open.push(made)
    return made
  }

  it.each([
    ['ahead', 0, 5 * MINUTES],
    ['behind', -5 * MINUTES, 0],
  ])('leave each other the runs that they execute: %s', async (name, ofFirst, ofSecond) => {
    const first = await plane(ofFirst)
    await first.call('POST', '/v1/agents', { name: 'worker', manifest: {} })
    const { id } = await first.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: name } })
    await expect.poll(() => asked.filter(text => text === name)).toHaveLength(1)
    // It looks for what is due when it starts.
    const second = await plane(ofSecond)
    await expect
      .poll(async () => isTerminal((await second.json<Run>(200, 'GET', `/v1/runs/${id}`)).status), { timeout: 15_000 })
      .toBe(true)
    expect(await first.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'succeeded' })
    expect(asked.filter(text => text === name)).toHaveLength(1)
  })
})
