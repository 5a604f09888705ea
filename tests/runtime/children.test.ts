import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'
import { nodeFixture, TIMES } from './node-fixture.ts'

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

const spent = { tokensIn: 1, tokensOut: 1, costNano: 0 }

/** The boss calls two helpers at once; each of them calls a leaf, which waits for an hour. */
const found: FoundModel = {
  id: 'test/m',
  prices: async () => null,
  async ask({ system, messages }) {
    const isFirst = !messages.some(({ role }) => role === 'assistant')
    const calls = { boss: ['agent__helper', 'agent__helper'], helper: ['agent__leaf'], leaf: ['wait'] }[system]!
    const toolCalls = calls.map((name, at) => ({
      id: `c${at}`,
      name,
      arguments: name === 'wait' ? { seconds: 3600 } : { prompt: 'work' },
    }))
    return isFirst
      ? { text: '', stop: 'tools', provider: 'test', model: 'test/m', toolCalls, spent }
      : { text: 'done', stop: 'end', provider: 'test', model: 'test/m', toolCalls: [], spent }
  },
}

const models = { find: async () => found }

async function tree(place: 'here' | 'on a node') {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-children-'))
  open.push({ close: () => rm(folder, { recursive: true, force: true }) })
  const on = await api({
    models,
    url: join(folder, 'control.db'),
    masterKey: new Uint8Array(32).fill(7),
    tunnel: TIMES,
  })
  open.push(on)
  if (place === 'on a node') open.push(await nodeFixture(on, folder, { models }))
  const labels = place === 'here' ? {} : { 'waybill.pool': 'default' }
  for (const [name, subAgents] of [
    ['leaf', []],
    ['helper', [{ name: 'leaf' }]],
    ['boss', [{ name: 'helper' }]],
  ] as const) {
    const manifest = { systemPrompt: name, subAgents, tools: ['wait'] }
    await on.json(201, 'POST', '/v1/agents', { name, labels, manifest })
  }
  const boss = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'boss', input: { prompt: 'go' } })
  const started = async () => (await runsOf(on)).filter(({ status }) => status !== 'queued').length
  await expect.poll(started, { timeout: 10_000 }).toBe(5)
  return { on, boss: boss.id }
}

const runsOf = (on: Api) => on.json<Run[]>(200, 'GET', '/v1/runs')
const openOf = async (on: Api) =>
  (await runsOf(on)).filter(({ status }) => !isTerminal(status)).map(({ agentName }) => agentName)

describe.each(['here', 'on a node'] as const)('a run that ends without a result, %s', place => {
  it('takes with it what it has called, and what that has called', async () => {
    const { on, boss } = await tree(place)
    const [first] = await on.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${boss}`)
    await on.json(200, 'POST', `/v1/runs/${first!.id}/cancel`, {})
    await expect.poll(() => openOf(on), { timeout: 10_000 }).toEqual([])
    expect(await on.json<Run>(200, 'GET', `/v1/runs/${boss}`)).toMatchObject({
      status: 'failed',
      error: { code: 'subagent_failed' },
    })
    for (const run of await runsOf(on)) if (run.id !== boss) expect(run.status).toBe('cancelled')
  })

  it('does so where its agent is deleted', async () => {
    const { on } = await tree(place)
    expect((await on.call('DELETE', '/v1/agents/boss')).status).toBe(204)
    await expect.poll(() => openOf(on), { timeout: 10_000 }).toEqual([])
  })
})
