import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'
import { filesOf, type NodeFixture, nodeFixture, TIMES, until } from './node-fixture.ts'

let folder: string
let control: Api
let one: NodeFixture
const labels = { 'waybill.pool': 'default' }

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-node-children-'))
  control = await api({ url: join(folder, 'control.db'), masterKey: new Uint8Array(32).fill(7), tunnel: TIMES })
  one = await nodeFixture(control, folder)
  await until(async () => {
    const node = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${one.identity.nodeId}`)
    return node.status === 'online'
  }, 'the node is online')
})
afterEach(async () => {
  await one.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

const agent = (name: string, subAgents: string[], more = {}) => {
  const manifest = { subAgents: subAgents.map(name => ({ name })), ...more }
  return control.json(201, 'POST', '/v1/agents', { name, labels, manifest })
}
const start = (agentName: string, prompt: string) =>
  control.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt } })
const summary = (id: string) => control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
const ended = (id: string) =>
  until(async () => {
    const run = await summary(id)
    return isTerminal(run.status) && run
  }, `run ${id} ends`)
const childrenOf = (id: string) => control.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${id}&fields=summary`)
const journalOf = (id: string) => control.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
const call = (name: string, prompt: string) => `/call agent__${name} ${JSON.stringify({ prompt })}`

describe('an agent on a pool that calls another one', () => {
  it('has the other one run on the same node, with a journal and a receipt of its own', async () => {
    await agent('boss', ['worker'])
    await agent('worker', ['helper'])
    await agent('helper', [])
    const made = await start('boss', call('worker', call('helper', 'canary-deep')))
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded', nodeId: one.identity.nodeId })
    const [worker] = await childrenOf(made.id)
    const [helper] = await childrenOf(worker!.id)
    for (const [run, depth, parent] of [
      [worker!, 1, made.id],
      [helper!, 2, worker!.id],
    ] as const) {
      expect(run).toMatchObject({ status: 'succeeded', nodeId: one.identity.nodeId, parentRunId: parent })
      expect(run.trigger).toMatchObject({ kind: 'subagent', ref: parent })
      const { rows } = await one.db.execute({
        sql: 'select depth, parent_run_id from runs where id = ?',
        args: [run.id],
      })
      expect([rows[0]?.depth, rows[0]?.parent_run_id]).toEqual([depth, parent])
      const receipt = await control.json<Receipt>(200, 'GET', `/v1/runs/${run.id}/receipt`)
      const journal = await journalOf(run.id)
      const verified = await control.json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })
      expect(verified).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
    }
    const { events } = await journalOf(made.id)
    expect(JSON.stringify(events)).toContain('canary-deep')
    expect(JSON.stringify(events)).toContain(worker!.id)
    expect(await filesOf(folder, 'control')).not.toContain('canary-deep')
    const { rows } = await one.db.execute('select count(*) from tunnel_children')
    expect(rows[0]?.[0]).toBe(2)
  })

  it('is told when there is no such agent, or its budget is used up, and goes on', async () => {
    await agent('boss', ['nobody', 'spender'])
    await agent('spender', [])
    const limit = { maxCostUsdPerDay: null, maxCostUsdPerRun: null, maxTokensPerDay: null, maxRunsPerDay: 1 }
    await control.json(200, 'PUT', '/v1/agents/spender/budget', limit)
    await ended((await start('spender', 'x')).id)
    const made = await start('boss', [call('nobody', 'a'), call('spender', 'b')].join('\n'))
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
    expect(await childrenOf(made.id)).toEqual([])
    const text = JSON.stringify((await journalOf(made.id)).events)
    expect(text).toContain('there is no agent called nobody')
    expect(text).toMatch(/budget_exceeded/)
  })

  it('holds the depth that agents may be nested to', async () => {
    await agent('again', ['again'])
    let prompt = 'the end'
    for (let depth = 0; depth < 7; depth++) prompt = call('again', prompt)
    const made = await start('again', prompt)
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
    const all = await control.json<Run[]>(200, 'GET', '/v1/runs?agentName=again&fields=summary&limit=50')
    expect(all).toHaveLength(6)
    expect(all.every(({ status }) => status === 'succeeded')).toBe(true)
  })

  it('goes on when the tunnel is cut and the node killed between asking and having', async () => {
    await agent('boss', ['worker'], { tools: ['wait'] })
    await agent('worker', [], { tools: ['wait'] })
    let asked = 0
    one.link.meddle.toControl = frame => {
      const told = frame.body.case === 'bundle' ? frame.body.value.frames : [frame]
      if (!told.some(({ body }) => body.case === 'childAsk') || asked++ > 0) return [frame]
      one.link.cut()
      return []
    }
    const made = await start('boss', call('worker', '/call wait {"seconds":0.05}'))
    await until(async () => asked > 0, 'it asks')
    await one.kill()
    await one.restart()
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
    expect(await childrenOf(made.id)).toHaveLength(1)
  })

  it('takes its children with it when it is cancelled, and hears of one that is', async () => {
    await agent('boss', ['slow'])
    await agent('slow', [], { tools: ['wait'] })
    const begun = async (parent: string) =>
      until(async () => {
        const [child] = await childrenOf(parent)
        return child?.status === 'running' && child
      }, 'the child runs')
    const first = await start('boss', call('slow', '/call wait {"seconds":60}'))
    const child = await begun(first.id)
    await control.json(200, 'POST', `/v1/runs/${first.id}/cancel`, {})
    expect(await summary(child.id)).toMatchObject({ status: 'cancelled' })
    await until(async () => {
      const { rows } = await one.db.execute("select count(*) from runs where status = 'cancelled'")
      return rows[0]?.[0] === 2
    }, 'the node has ended both')
    const second = await start('boss', call('slow', '/call wait {"seconds":60}'))
    await control.json(200, 'POST', `/v1/runs/${(await begun(second.id)).id}/cancel`, {})
    expect(await ended(second.id)).toMatchObject({ status: 'failed', error: { code: 'subagent_failed' } })
  })

  it('starts only agents that its manifest names, and none that the node cannot hold', async () => {
    await agent('boss', ['strict', 'worker'])
    await agent('strict', [], { isolation: 'firecracker' })
    await agent('worker', [])
    await agent('other', [])
    one.link.meddle.toControl = frame => {
      const told = frame.body.case === 'bundle' ? frame.body.value.frames : [frame]
      for (const { body } of told) {
        if (body.case === 'childAsk' && body.value.agentName === 'worker') body.value.agentName = 'other'
      }
      return [frame]
    }
    const made = await start('boss', [call('strict', 'a'), call('worker', 'b')].join('\n'))
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
    expect(await childrenOf(made.id)).toEqual([])
    const text = JSON.stringify((await journalOf(made.id)).events)
    expect(text).toContain('isolation firecracker')
    expect(text).toContain('not an agent that boss may call')
  })
})
