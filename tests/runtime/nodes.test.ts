import { copyFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { genesis, sealEvent } from '../../runtime/execution/journal/event.ts'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import { checkStore } from '../../runtime/host/check-receipts.ts'
import { readEventLines, signalAad } from '../../runtime/nodes/sealed-payloads.ts'
import { clearRecords } from '../../runtime/vault/records.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { type Assign, type ControlFrame, ReadRequestSchema } from '../../shared/tunnel/gateway.gen.ts'
import { sealTo } from '../../shared/tunnel/sealed-payload.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'
import { type NodeFixture, nodeFixture, TIMES, until } from './node-fixture.ts'

let folder: string
let control: Api
let nodes: NodeFixture[] = []
const masterKey = new Uint8Array(32).fill(7)

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-nodes-'))
  control = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, tunnel: TIMES })
  nodes = []
})
afterEach(async () => {
  for (const node of nodes) await node.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

async function node(options: Parameters<typeof nodeFixture>[2] = {}): Promise<NodeFixture> {
  const made = await nodeFixture(control, folder, options)
  nodes.push(made)
  await online(made)
  return made
}

const online = (made: NodeFixture) =>
  until(async () => {
    const { status } = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${made.identity.nodeId}`)
    return status === 'online'
  }, 'the node is online')

const start = (agentName: string, prompt: string) =>
  control.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt } })

const summary = (id: string) => control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)

const ended = (id: string) =>
  until(async () => {
    const run = await summary(id)
    return isTerminal(run.status) && run
  }, `run ${id} ends`)

/** Everything that stands in the files of one side. */
async function filesOf(side: string): Promise<string> {
  const names = (await readdir(folder)).filter(name => name.startsWith(`${side}.db`))
  expect(names.length).toBeGreaterThan(0)
  return (await Promise.all(names.map(name => readFile(join(folder, name), 'latin1')))).join('')
}

describe('a run on a node', () => {
  it('is executed there, read through the tunnel, and receipted here', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { systemPrompt: 'Be brief.' } })
    const made = await start('echo', 'canary-prompt-7781')
    expect(made).toMatchObject({ status: 'queued' })
    await ended(made.id)
    const run = await control.json<Run>(200, 'GET', `/v1/runs/${made.id}`)
    expect(run).toMatchObject({
      status: 'succeeded',
      nodeId: one.identity.nodeId,
      input: { prompt: 'canary-prompt-7781' },
      output: { result: expect.stringContaining('canary-prompt-7781') },
    })
    const steps = await control.json<{ stepId: string; status: string }[]>(200, 'GET', `/v1/runs/${made.id}/steps`)
    expect(steps).toEqual([expect.objectContaining({ stepId: 'model-1', status: 'completed' })])
    const listed = await control.json<Run[]>(200, 'GET', '/v1/runs')
    expect(listed[0]).toEqual(run)
    const receipt = await control.json<Receipt>(200, 'GET', `/v1/runs/${made.id}/receipt`)
    expect(receipt.payload).toMatchObject({ nodeId: one.identity.nodeId, eventCount: 2, models: ['demo/echo'] })
    expect(receipt.payload.node?.signature).toBeDefined()
    const journal = await control.json(200, 'GET', `/v1/runs/${made.id}/journal`)
    const verified = await control.json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })
    expect(verified).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
    const events = await control.call('GET', `/v1/runs/${made.id}/events`)
    const text = await events.text()
    expect(text.match(/^event: step_/gm)).toHaveLength(2)
  })

  it('has a receipt that is held against what the control plane says of it, also by a restore', async () => {
    await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    const { id } = await start('echo', 'hello')
    await ended(id)
    await control.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
    const checked = () => checkStore(control.db, clearRecords, { runIds: [id] })
    expect(await checked()).toMatchObject({ receipts: 1, hold: 1 })
    await control.db.execute({ sql: 'update runs set tokens_out = tokens_out + 1 where id = ?', args: [id] })
    expect((await checked()).broken).toEqual([`run ${id}: record_mismatch`])
  })

  it('leaves its texts on the node and nowhere else, and sealed there', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { systemPrompt: 'canary-system-7782' } })
    const made = await start('echo', 'canary-prompt-7781')
    await ended(made.id)
    expect(await filesOf('one')).toContain(made.id)
    expect(await filesOf('one')).not.toMatch(/canary-(prompt|system)/)
    expect(await filesOf('control')).not.toContain('canary-prompt-7781')
    await one.kill()
    await until(async () => (await control.call('GET', `/v1/runs/${made.id}`)).status === 503, 'the node is away')
    expect(await (await control.call('GET', `/v1/runs/${made.id}`)).json()).toMatchObject({ code: 'node_offline' })
    const [listed] = await control.json<Run[]>(200, 'GET', '/v1/runs')
    expect(listed).toMatchObject({ id: made.id, status: 'succeeded', dataAvailable: false })
    expect(listed?.input).toBeUndefined()
    expect(await summary(made.id)).toMatchObject({ status: 'succeeded' })
    await one.restart()
  })

  it('never costs more than its agent lets one run cost', async () => {
    let calls = 0
    const model: FoundModel = {
      id: 'test/metered',
      prices: async () => (tokensIn, tokensOut) => tokensIn * 1000 + tokensOut * 2000,
      async ask({ maxOutputTokens }) {
        const tokensOut = Math.min(50, maxOutputTokens)
        const toolCalls = [{ id: `c${++calls}`, name: 'wait', arguments: { seconds: 0 } }]
        const spent = { tokensIn: 10, tokensOut, costNano: 10_000 + tokensOut * 2000 }
        return { text: '', stop: 'tools', provider: 'test', model: 'test/metered', toolCalls, spent }
      },
    }
    await node({ models: { find: async () => model } })
    await control.json(201, 'POST', '/v1/agents', { name: 'spender', manifest: { tools: ['wait'] } })
    const limit = { maxCostUsdPerDay: null, maxCostUsdPerRun: 0.0005, maxTokensPerDay: null, maxRunsPerDay: null }
    await control.json(200, 'PUT', '/v1/agents/spender/budget', limit)
    const run = await ended((await start('spender', 'x')).id)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    expect(calls).toBeGreaterThan(1)
    expect(run.costUsd).toBeGreaterThan(0)
    expect(run.costUsd).toBeLessThanOrEqual(0.0005)
    const [used] = await control.json<{ costUsd: number }[]>(200, 'GET', '/v1/usage?groupBy=agent')
    expect(used?.costUsd).toBe(run.costUsd)
  })

  it('waits for a human over a restart of its node, and takes the answer', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', {
      name: 'asker',
      manifest: { tools: ['ask_human'] },
    })
    const made = await start('asker', '/call ask_human {"prompt":"canary-question"}')
    await until(async () => (await summary(made.id)).status === 'waiting', 'the run waits')
    const [approval] = await control.json<{ id: string; prompt: string }[]>(200, 'GET', `/v1/runs/${made.id}/approvals`)
    expect(approval).toMatchObject({ prompt: 'canary-question' })
    expect(approval).not.toHaveProperty('dataAvailable')
    await one.kill()
    await until(async () => (await control.call('GET', `/v1/approvals/${approval!.id}`)).status === 503, 'it is away')
    for (const path of ['/v1/approvals', `/v1/runs/${made.id}/approvals`])
      expect(await control.json(200, 'GET', path)).toMatchObject([{ id: approval!.id, dataAvailable: false }])
    await one.restart()
    await online(one)
    await control.json(200, 'POST', `/v1/approvals/${approval!.id}/approve`, { comment: 'canary-answer' })
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
    const run = await control.json<Run>(200, 'GET', `/v1/runs/${made.id}`)
    expect(JSON.stringify(run.output)).toContain('canary-answer')
    expect(await filesOf('control')).not.toMatch(/canary-(?:question|answer)/)
  })
})

describe('a node whose store is an older copy', () => {
  it('makes no call again of runs that are over, or of which more was heard, and drops what was deleted', async () => {
    let calls = 0
    const model: FoundModel = {
      id: 'test/counted',
      async ask({ messages }) {
        const text = JSON.stringify(messages[0])
        const turn = messages.filter(({ role }) => role === 'assistant').length
        calls++
        const args = { name: 'wait_signal', arguments: { name: `go${turn}` } }
        const toolCalls = turn < (text.includes('twice') ? 2 : 1) ? [{ id: `c${turn}`, ...args }] : []
        const spent = { tokensIn: 1, tokensOut: 1, costNano: 0 }
        const stop = toolCalls.length > 0 ? ('tools' as const) : ('end' as const)
        return { text: 'done', stop, provider: 'test', model: 'test/counted', toolCalls, spent }
      },
    }
    const one = await node({ models: { find: async () => model } })
    await control.json(201, 'POST', '/v1/agents', { name: 'asker', manifest: { tools: ['wait_signal'] } })
    const made = await Promise.all(['over', 'deleted', 'twice'].map(prompt => start('asker', prompt)))
    const [over, deleted, open] = made.map(({ id }) => id) as [string, string, string]
    const asked = (id: string, events: number) =>
      until(async () => {
        const sql = 'select event_seq from remote_runs where run_id = ?'
        return (await control.db.execute({ sql, args: [id] })).rows[0]?.event_seq === events
      }, `run ${id} has told ${events} events`)
    for (const { id } of made) await asked(id, 3)
    await one.kill()
    const files = (await readdir(folder)).filter(name => name.startsWith('one.db'))
    for (const name of files) await copyFile(join(folder, name), join(folder, `copy-${name}`))
    await one.restart()
    for (const { id } of made) expect((await control.call('POST', `/v1/runs/${id}/signals/go0`, {})).status).toBe(204)
    await ended(over)
    await ended(deleted)
    await asked(open, 7)
    expect(calls).toBe(6)
    expect((await control.call('DELETE', `/v1/runs/${deleted}`)).status).toBe(204)
    const receipt = await control.json<Receipt>(200, 'GET', `/v1/runs/${over}/receipt`)
    const waiting = 'select 1 from node_frames'
    await until(async () => (await control.db.execute(waiting)).rows.length === 0, 'the node has it')
    await one.kill()

    for (const name of files) await rm(join(folder, name), { force: true })
    for (const name of files) await copyFile(join(folder, `copy-${name}`), join(folder, name))
    await one.restart()
    await online(one)
    expect(await ended(open)).toMatchObject({ status: 'failed', error: { code: 'node_lost' } })
    const after = await start('asker', 'after')
    await asked(after.id, 3)
    expect(calls).toBe(7)
    const statuses = async () => {
      const { rows } = await one.db.execute('select id, status from runs')
      return Object.fromEntries(rows.map(row => [row.id, row.status]))
    }
    await until(async () => !(deleted in (await statuses())), 'what was deleted is gone')
    expect(await statuses()).toMatchObject({ [over]: 'cancelled', [open]: 'cancelled' })
    expect(await summary(over)).toMatchObject({ status: 'succeeded' })
    expect(await control.json(200, 'GET', `/v1/runs/${over}/receipt`)).toEqual(receipt)
  })
})

describe('the prompt of an agent', () => {
  const manifest = {
    systemPrompt: 'canary-system',
    files: [{ path: 'a.txt', content: 'canary-file' }],
  }
  const publish = (more: object = {}) =>
    control.json<{ warnings: string[] }>(201, 'POST', '/v1/agents', { name: 'worker', manifest, ...more })
  const versions = async () => (await control.json<unknown[]>(200, 'GET', '/v1/agents/worker/versions')).length

  it('is read by the nodes of its pool alone: they run it, and show it to who asks', async () => {
    const systems: (string | undefined)[] = []
    const model: FoundModel = {
      id: 'test/seen',
      prices: async () => () => 0,
      async ask({ system }) {
        systems.push(system)
        const spent = { tokensIn: 1, tokensOut: 1, costNano: 0 }
        return { text: 'canary-output', stop: 'end', provider: 'test', model: 'test/seen', toolCalls: [], spent }
      },
    }
    const one = await node({ models: { find: async () => model } })
    expect((await publish()).warnings).toEqual([])
    const made = await start('worker', 'canary-input')
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
    expect(systems.join()).toContain('canary-system')
    await publish()
    expect(await versions()).toBe(1)
    const shown = await control.json<{ manifest: object }>(200, 'GET', '/v1/agents/worker')
    expect(shown.manifest).toMatchObject(manifest)
    await control.db.execute('pragma wal_checkpoint(truncate)')
    const [here, there] = [await filesOf('control'), await filesOf('one')]
    for (const canary of ['canary-system', 'canary-file', 'canary-input', 'canary-output']) {
      expect(there).not.toContain(canary)
      expect(here).not.toContain(canary)
    }
    await one.kill()
    await until(async () => (await control.call('GET', '/v1/agents/worker')).status === 503, 'nobody can read it')
    expect(await (await control.call('GET', '/v1/agents/worker')).json()).toMatchObject({ code: 'node_offline' })
    // To publish and to start runs none of it has to be read.
    await publish({ manifest: { ...manifest, systemPrompt: 'canary-second' } })
    expect(await versions()).toBe(2)
    const waiting = await start('worker', 'x')
    await one.restart()
    await ended(waiting.id)
    expect(systems.at(-1)).toContain('canary-second')
    expect(await filesOf('control')).not.toContain('canary-second')
  })

  it('is never left out: where it cannot be read, its runs end before they begin', async () => {
    const one = await node()
    await node({ name: 'two', pool: 'other' })
    await publish({ labels: { 'waybill.pool': 'default' } })
    await control.json(200, 'PATCH', '/v1/agents/worker', { labels: { 'waybill.pool': 'other' } })
    const run = await ended((await start('worker', 'x')).id)
    expect(run).toMatchObject({ status: 'failed', tokensIn: 0, error: { code: 'isolation_unavailable' } })
    const full = await control.json<Run>(200, 'GET', `/v1/runs/${run.id}`)
    expect(full.error?.message).toContain('sealed to pool default')
    expect((await one.db.execute('select 1 from runs')).rows).toEqual([])
  })

  it('stays readable while its pool has no node, which its publisher is told', async () => {
    const { warnings } = await publish({ labels: { 'waybill.pool': 'default' } })
    expect(warnings.join()).toContain('pool default had no enrolled node')
    await node()
    await start('worker', 'x').then(({ id }) => ended(id))
    const shown = await control.json<{ manifest: object }>(200, 'GET', '/v1/agents/worker')
    expect(shown.manifest).toMatchObject({ systemPrompt: 'canary-system' })
  })
})

describe('a fork of a run on a node', () => {
  it('begins on the node that has the journal, once, and copies nothing of it to the control plane', async () => {
    const one = await node()
    await node({ name: 'two', pool: 'other' })
    await control.json(201, 'POST', '/v1/agents', {
      name: 'caller',
      labels: { 'waybill.pool': 'default' },
      manifest: { tools: ['http_request'] },
    })
    const source = await start('caller', 'canary-source\n/call http_request {"url":"https://nowhere.invalid/"}')
    await ended(source.id)
    // Where new runs of the agent would go does not matter: the journal is where it is.
    await control.json(200, 'PATCH', '/v1/agents/caller', { labels: { 'waybill.pool': 'other' } })
    const orders: ControlFrame[] = []
    one.link.meddle.toNode = frame => {
      if (frame.body.case === 'assign') orders.push(frame)
      return [frame]
    }
    const input = { prompt: 'canary-fork' }
    const fork = await control.json<Run>(201, 'POST', `/v1/runs/${source.id}/fork`, { fromStepId: 'model-2', input })
    expect(await ended(fork.id)).toMatchObject({ status: 'succeeded', nodeId: one.identity.nodeId })
    expect(orders).toHaveLength(1)
    await one.runtime.worker?.handle(orders)
    const { rows } = await one.db.execute({ sql: 'select count(*) from events where run_id = ?', args: [fork.id] })
    const journal = await control.json<{ eventCount: number }>(200, 'GET', `/v1/runs/${fork.id}/journal`)
    expect([journal.eventCount, rows[0]?.[0]]).toEqual([6, 6])
    expect(await filesOf('one')).toContain(fork.id)
    for (const side of ['one', 'control']) expect(await filesOf(side)).not.toMatch(/canary-(?:source|fork)/)
  })

  it('is refused while the journal is away, and fails by name when its source is gone before it begins', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    const source = await start('echo', 'x')
    await ended(source.id)
    const fork = (status: number) =>
      control.json<Run>(status, 'POST', `/v1/runs/${source.id}/fork`, { fromStepId: 'model-1' })
    one.link.meddle.toNode = frame => {
      if (frame.body.case === 'assign') frame.body.value.forkedRun = crypto.randomUUID()
      return [frame]
    }
    const { id } = await fork(201)
    expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'node_unavailable' }, tokensIn: 0 })
    await one.kill()
    await until(async () => (await control.call('GET', `/v1/runs/${source.id}`)).status === 503, 'the node is away')
    expect(await fork(503)).toMatchObject({ code: 'node_offline' })
    await one.restart()
  })
})

describe('a long journal on a node', () => {
  it('is read in pages of bytes by a control plane that asks for them, and as before by one that does not', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    const { id } = await start('echo', 'x')
    await ended(id)
    let head = genesis(id)
    const rows = Array.from({ length: 40 }, () => {
      const payload = { output: 'é and words '.repeat(8000) }
      const event = sealEvent(head, id, { kind: 'step_completed', stepId: 'tool-1-1', attempt: 1, payload }, new Date())
      head = event.entry
      return event
    })
    await one.db.write([
      { sql: 'delete from events where run_id = ?', args: [id] },
      ...rows.map(({ entry, body }) => ({
        sql: 'insert into events (run_id, seq, hash, body) values (?, ?, ?, ?)',
        args: [id, entry.seq, entry.hash, body],
      })),
    ])
    const asked = { requestId: '', kind: 'events', id, from: 1n, limit: 500, box: new Uint8Array(), lines: true }
    const read = async (pages: boolean) => {
      const found = await one.runtime.worker?.read(create(ReadRequestSchema, { ...asked, pages }))
      return readEventLines(new TextDecoder().decode(found?.body), 500)
    }
    const page = await read(true)
    expect([page?.hasMore, page?.events.length]).toEqual([true, 10])
    expect(await read(false)).toMatchObject({ hasMore: false, events: { length: 40 } })

    const journal = `/v1/runs/${id}/journal`
    const events = rows.map(({ entry }) => entry)
    expect(await control.json(200, 'GET', journal)).toMatchObject({ eventCount: 40, events })
    // A node of an older version takes no notice of the member.
    one.link.meddle.toNode = frame => {
      if (frame.body.case === 'readRequest') frame.body.value.pages = false
      return [frame]
    }
    expect(await control.json(200, 'GET', journal)).toMatchObject({ eventCount: 40, events })
  })

  it('is not copied into a fork where it is longer than the node bears', async () => {
    await node({ copiedBytesAtMost: 500 })
    await control.json(201, 'POST', '/v1/agents', { name: 'caller', manifest: { tools: ['wait'] } })
    const source = await start('caller', '/call wait {"seconds":0}')
    await ended(source.id)
    const fork = (fromStepId: string) =>
      control.json<Run>(201, 'POST', `/v1/runs/${source.id}/fork`, { fromStepId }).then(({ id }) => ended(id))
    expect(await fork('model-2')).toMatchObject({ status: 'failed', error: { code: 'node_unavailable' } })
    expect(await fork('model-1')).toMatchObject({ status: 'succeeded' })
  })
})

describe('what a run costs the tunnel', () => {
  it('is a frame for a stretch of time and none for a step, and no step waits until it is acknowledged', async () => {
    const one = await node()
    const limits = { maxTurns: 500, maxSteps: 2000 }
    const anomalies = { steps: 100_000, loopIterations: 100_000 }
    await control.json(201, 'POST', '/v1/agents', { name: 'talker', manifest: { tools: ['wait'], limits, anomalies } })
    for (const [turns, acknowledged] of [
      [5, true],
      [100, true],
      [100, false],
    ] as const) {
      const steps = 2 * turns + 1
      let [frames, told, ordered] = [0, 0, false]
      one.link.meddle.toControl = frame => {
        const { seq, body } = frame
        if (seq > 0n) frames++
        told += body.case === 'bundle' ? body.value.frames.length : seq > 0n ? 1 : 0
        return [frame]
      }
      // Where nothing is acknowledged, the last that the node hears is its order.
      one.link.meddle.toNode = frame => {
        const heard = acknowledged || !ordered
        ordered ||= frame.body.case === 'assign'
        return heard ? [frame] : []
      }
      const from = performance.now()
      const made = await start('talker', `/call*${turns} wait {"seconds":0}`)
      await until(async () => {
        const sql = `select 1 from runs where id = ? and status = 'succeeded'`
        return (await one.db.execute({ sql, args: [made.id] })).rows.length === 1
      }, 'the run ends on its node')
      expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
      const stretches = (performance.now() - from) / 45
      // Acceptance, two events of each step, and the end.
      expect(told).toBe(2 * steps + 2)
      expect(frames).toBeLessThan(4 + stretches)
      expect(frames).toBeLessThan(steps)
    }
  })
})

describe('a link that fails', () => {
  const chain = (id: string) =>
    control.json<{ events: { seq: number; kind: string; stepId: string; meta: { nodeId?: string } }[] }>(
      200,
      'GET',
      `/v1/runs/${id}/journal`,
    )

  /** Each event is streamed once, none is missing, and all of them are of this node. */
  async function once(made: NodeFixture, id: string): Promise<void> {
    const { rows } = await control.db.execute({
      sql: `select r.seq - json_array_length(r.events) + 1 + e.key as seq, e.value ->> 4 as hash
        from remote_events as r, json_each(r.events) as e where r.run_id = ? order by r.seq, e.key`,
      args: [id],
    })
    const there = await made.db.execute({ sql: 'select seq, hash from events where run_id = ?', args: [id] })
    expect(rows.map(row => [row.seq, row.hash])).toEqual(there.rows.map(row => [row.seq, row.hash]))
    const { events } = await chain(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
    const nodeIds = new Set(events.flatMap(({ meta }) => meta.nodeId ?? []))
    expect([...nodeIds]).toEqual([made.identity.nodeId])
    const here = await control.db.execute({ sql: 'select 1 from events where run_id = ?', args: [id] })
    expect(here.rows).toHaveLength(0)
  }

  it('is cut in the middle of a run, which ends on its node, each event once', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    const made = await start('slow', '/call*5 wait {"seconds":0.05}')
    await until(async () => (await summary(made.id)).status === 'running', 'the run runs')
    one.link.cut()
    await until(async () => {
      const { rows } = await one.db.execute({ sql: 'select status from runs where id = ?', args: [made.id] })
      return rows[0]?.status === 'succeeded'
    }, 'the run ends on its node')
    expect(await summary(made.id)).toMatchObject({ status: 'running' })
    one.link.mend()
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded', nodeId: one.identity.nodeId })
    await once(one, made.id)
  })

  it('repeats and swaps frames, and nothing is counted twice or missed', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    let seen = 0
    let held: Parameters<NodeFixture['link']['meddle']['toControl']>[0] | undefined
    one.link.meddle.toControl = frame => {
      if (frame.body.case === 'hello') return [frame]
      if (frame.seq > 0n && ++seen % 3 === 0) {
        held = frame
        return []
      }
      const out = held ? [frame, held] : seen % 2 === 0 ? [frame, frame] : [frame]
      held = undefined
      return out
    }
    one.link.meddle.toNode = frame => (frame.body.case !== 'welcome' && seen % 2 === 0 ? [frame, frame] : [frame])
    const runs: Run[] = []
    // A busy node tells much in few frames, and then none is swapped.
    while (runs.length === 0 || (one.link.streams < 2 && runs.length < 160)) {
      const more = Array.from({ length: 8 }, (_, at) => start('slow', `run ${at}\n/call*6 wait {"seconds":0.02}`))
      for (const run of await Promise.all(more)) {
        expect(await ended(run.id)).toMatchObject({ status: 'succeeded' })
        runs.push(run)
      }
    }
    one.link.meddle.toControl = frame => [frame]
    one.link.meddle.toNode = frame => [frame]
    await online(one)
    for (const { id } of runs) await until(async () => (await control.call('GET', `/v1/runs/${id}`)).ok, 'it is read')
    for (const { id } of runs) await once(one, id)
    expect(one.link.streams).toBeGreaterThan(1)
  })

  it('is no reason to lose a run when its node is killed, or the control plane, or both', async () => {
    const one = await node({ gateway: () => control.runtime.nodes.gateway })
    await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    const first = await start('slow', '/call*4 wait {"seconds":0.05}')
    await until(async () => (await summary(first.id)).status === 'running', 'the run runs')
    await one.kill()
    await one.restart()
    const second = await start('slow', '/call*4 wait {"seconds":0.05}')
    await until(async () => (await summary(second.id)).status === 'running', 'the second run runs')
    await control.close()
    control = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, tunnel: TIMES })
    for (const { id } of [first, second]) {
      expect(await ended(id)).toMatchObject({ status: 'succeeded' })
      await until(async () => (await control.call('GET', `/v1/runs/${id}`)).ok, 'it is read')
      await once(one, id)
      await control.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
    }
  })

  it('lets a cancelled run be final at once, and its receipt come when the node has sealed it', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    const made = await start('slow', '/call wait {"seconds":60}')
    await until(async () => (await summary(made.id)).status === 'running', 'the run runs')
    one.link.cut()
    await control.json(200, 'POST', `/v1/runs/${made.id}/cancel`, {})
    expect(await summary(made.id)).toMatchObject({ status: 'cancelled' })
    const receipt = await control.call('GET', `/v1/runs/${made.id}/receipt`)
    expect([receipt.status, await receipt.json()]).toMatchObject([503, { code: 'node_offline' }])
    one.link.mend()
    const kept = await until(async () => {
      const answer = await control.call('GET', `/v1/runs/${made.id}/receipt`)
      return answer.ok && ((await answer.json()) as Receipt)
    }, 'the receipt is there')
    const journal = await chain(made.id)
    expect(kept.payload).toMatchObject({ status: 'cancelled', eventCount: journal.events.length })
    expect(journal.events.at(-1)).toMatchObject({ kind: 'step_failed' })
  })

  it('is opened anew before it is old, and nobody notices', async () => {
    const one = await node({ maxStreamMs: 60 })
    await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    const made = await start('slow', '/call*8 wait {"seconds":0.05}')
    const seen = new Set<string>()
    await until(async () => {
      seen.add((await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${one.identity.nodeId}`)).status)
      return isTerminal((await summary(made.id)).status)
    }, 'the run ends')
    expect([...seen]).toEqual(['online'])
    expect(await summary(made.id)).toMatchObject({ status: 'succeeded' })
    await until(async () => (await control.call('GET', `/v1/runs/${made.id}`)).ok, 'it is read')
    await once(one, made.id)
    expect(one.link.streams).toBeGreaterThan(3)
  })

  it('passes signals on when it is mended, each once', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'signalled', manifest: { tools: ['wait_signal'] } })
    const made = await start('signalled', '/call wait_signal {"name":"go"}')
    await until(async () => (await summary(made.id)).status === 'running', 'the run runs')
    one.link.cut()
    expect((await control.call('POST', `/v1/runs/${made.id}/signals/go`, { value: 'canary-signal' })).status).toBe(204)
    one.link.mend()
    await ended(made.id)
    expect(JSON.stringify(await control.json(200, 'GET', `/v1/runs/${made.id}`))).toContain('canary-signal')
    expect(await filesOf('control')).not.toContain('canary-signal')
  })
})

describe('a large output on a node', () => {
  it('is read through the tunnel by its digest, and is 503 while the node is away', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
    const made = await start('echo', 'kiwi-text '.repeat(35_000))
    await ended(made.id)
    const { events } = await control.json<JournalExport>(200, 'GET', `/v1/runs/${made.id}/journal`)
    const { output } = events.find(({ kind }) => kind === 'step_completed')!.payload as {
      output: { $blob: { sha256: string } }
    }
    const path = `/v1/runs/${made.id}/blobs/${output.$blob.sha256}`
    expect(((await (await control.call('GET', path)).json()) as { text: string }).text).toContain('kiwi-text kiwi-text')
    await control.json(404, 'GET', `/v1/runs/${made.id}/blobs/${'0'.repeat(64)}`)
    await one.kill()
    expect(await control.json(503, 'GET', path)).toMatchObject({ code: 'node_offline' })
    await one.restart()
    expect(await filesOf('control')).not.toContain('kiwi-text')
  })
})

describe('placement', () => {
  it('offers a new run to a connected node by the commit that makes it, and queues it where there is none', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    await ended((await start('echo', 'first')).id)
    const stateOf = async (id: string) => {
      const sql = `select f.state, f.node_id, r.node_id as of_run, r.epoch from remote_runs f join runs r on r.id = f.run_id where f.run_id = ?`
      const { rows } = await control.db.execute({ sql, args: [id] })
      return rows[0] && { ...rows[0] }
    }
    one.link.meddle.toNode = () => []
    const seen: unknown[] = []
    const write = control.db.write.bind(control.db)
    const orders = async () =>
      (await control.db.execute('select node_id from node_frames')).rows.map(row => row.node_id)
    await until(async () => (await orders()).length === 0, 'the first order was acted on')
    control.db.write = async statements => {
      const results = await write(statements)
      if (statements.some(one => typeof one === 'object' && /insert into "runs"/.test(one.sql))) {
        seen.push(await orders())
      }
      return results
    }
    const made = await start('echo', 'second')
    control.db.write = write
    const { nodeId } = one.identity
    expect(seen).toEqual([[nodeId]])
    expect(await stateOf(made.id)).toEqual({ state: 'offered', node_id: nodeId, of_run: nodeId, epoch: 1 })
    one.link.meddle.toNode = frame => [frame]
    await one.kill()
    const status = async () => (await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${nodeId}`)).status
    await until(async () => (await status()) !== 'online', 'the node is away')
    const waiting = await start('echo', 'third')
    expect(await stateOf(waiting.id)).toEqual({ state: 'queued', node_id: null, of_run: null, epoch: 1 })
    await one.restart()
    for (const { id } of [made, waiting]) expect(await ended(id)).toMatchObject({ status: 'succeeded', nodeId })
  })

  it('fails a run that no enrolled node can hold, and says what is missing and what there is', async () => {
    await node({ backends: ['wasm', 'runc'] })
    await control.json(201, 'POST', '/v1/agents', { name: 'strict', manifest: { isolation: 'firecracker' } })
    const made = await start('strict', 'x')
    const run = await ended(made.id)
    expect(run).toMatchObject({ status: 'failed', tokensIn: 0, error: { code: 'isolation_unavailable' } })
    const full = await control.json<Run>(200, 'GET', `/v1/runs/${made.id}`)
    expect(full.error?.message).toMatch(/firecracker.*available: runc, wasm/)
    const receipt = await control.json<Receipt>(200, 'GET', `/v1/runs/${made.id}/receipt`)
    expect(receipt.payload).toMatchObject({ status: 'failed', eventCount: 0 })
  })

  it('refuses what this version does not give to nodes, in words', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    expect(await control.json(400, 'PUT', '/v1/secrets/token', { value: 'canary-secret' })).toMatchObject({
      error: expect.stringContaining('/v1/pools/{pool}/credentials'),
    })
    const made = await start('echo', 'x')
    await ended(made.id)
    expect(await control.json(409, 'DELETE', `/v1/nodes/${one.identity.nodeId}`)).toMatchObject({ code: 'node_busy' })
    expect((await control.call('DELETE', `/v1/runs/${made.id}`)).status).toBe(204)
    await until(
      async () => (await one.db.execute('select 1 from run_data')).rows.length === 0,
      'the run is gone from its node',
    )
    expect((await control.call('DELETE', `/v1/nodes/${one.identity.nodeId}`)).status).toBe(204)
  })

  it('ends the runs of a node that is removed by force, and of an agent that is deleted', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    const [first, second] = [await start('slow', '/call wait {"seconds":60}'), await start('slow', 'x')]
    await ended(second.id)
    await until(async () => (await summary(first.id)).status === 'running', 'the run runs')
    expect((await control.call('DELETE', `/v1/nodes/${one.identity.nodeId}?force=true`)).status).toBe(204)
    expect(await summary(first.id)).toMatchObject({ status: 'failed', error: { code: 'node_lost' } })
    await control.json<Receipt>(200, 'GET', `/v1/runs/${first.id}/receipt`)
    // What only that node had is not waited for any more.
    for (const [{ id }, status] of [[first, 'failed'] as const, [second, 'succeeded'] as const]) {
      expect(await control.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status, dataAvailable: false })
      for (const part of ['journal', 'steps', 'steps/model-1/request'])
        expect(await control.json(410, 'GET', `/v1/runs/${id}/${part}`), part).toMatchObject({ code: 'node_removed' })
    }
    const two = await node({ name: 'two' })
    const third = await start('slow', '/call wait {"seconds":60}')
    await until(async () => (await summary(third.id)).status === 'running', 'the run runs')
    expect((await control.call('DELETE', '/v1/agents/slow')).status).toBe(204)
    await control.runtime.scheduled()
    expect(await summary(third.id)).toMatchObject({ status: 'failed', error: { code: 'agent_deleted' } })
    await until(
      async () => (await two.db.execute("select 1 from runs where status = 'cancelled'")).rows.length === 1,
      'its node has ended it',
    )
  })

  it('lets a node that was removed while it was away make no further call: it gives up, and says why', async () => {
    let calls = 0
    const model: FoundModel = {
      id: 'test/counted',
      async ask() {
        const toolCalls = [{ id: `c${++calls}`, name: 'wait', arguments: { seconds: 1 } }]
        const spent = { tokensIn: 1, tokensOut: 1, costNano: 0 }
        return { text: '', stop: 'tools', provider: 'test', model: 'test/counted', toolCalls, spent }
      },
    }
    const one = await node({ models: { find: async () => model } })
    await control.json(201, 'POST', '/v1/agents', { name: 'caller', manifest: { tools: ['wait'] } })
    const made = await start('caller', 'x')
    await until(async () => calls > 0, 'it calls')
    await one.kill()
    const before = calls
    expect((await control.call('DELETE', `/v1/nodes/${one.identity.nodeId}?force=true`)).status).toBe(204)
    expect(await ended(made.id)).toMatchObject({ status: 'failed', error: { code: 'node_lost' } })
    await one.restart()
    await expect(one.tunnel.done).rejects.toMatchObject({ code: 'removed' })
    expect(calls).toBe(before)
  })

  it('executes a run at once on a node whose clock is behind', async () => {
    await node({ clock: { now: () => new Date(Date.now() - 50_000), monotonic: () => performance.now() } })
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    const made = await start('echo', 'x')
    expect(await ended(made.id)).toMatchObject({ status: 'succeeded' })
  })

  it('loses no node, and ends no run of one, where a control plane that it has not dialled has a clock days ahead', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    const made = await start('slow', '/call wait {"seconds":60}')
    await until(async () => (await summary(made.id)).status === 'running', 'the run runs')
    const clock = { now: () => new Date(Date.now() + 3 * 86_400_000), monotonic: () => performance.now() }
    const other = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, tunnel: TIMES, clock })
    try {
      for (let turn = 0; turn < 3; turn++) {
        await other.runtime.scheduled()
        await new Promise(resolve => setTimeout(resolve, TIMES.heartbeatMs))
      }
      expect(await summary(made.id)).toMatchObject({ status: 'running' })
      const { rows } = await control.db.execute('select lost_reported from nodes')
      expect([one.identity.nodeId, ...rows.map(row => row.lost_reported)]).toEqual([one.identity.nodeId, 0])
    } finally {
      await other.close()
    }
  })

  it('hears at a heartbeat what was decided about a node at another control plane', async () => {
    const one = await node()
    const other = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, tunnel: TIMES })
    const told: boolean[] = []
    one.link.meddle.toNode = frame => {
      if (frame.body.case === 'drain') told.push(frame.body.value.on)
      return [frame]
    }
    await other.json(200, 'POST', `/v1/nodes/${one.identity.nodeId}/drain`, {})
    await until(async () => told.length > 0, 'the node is told')
    let proofs = 0
    const { refresh } = one.link.transport
    one.link.transport.refresh = request => {
      proofs++
      return refresh(request)
    }
    expect((await other.call('DELETE', `/v1/nodes/${one.identity.nodeId}`)).status).toBe(204)
    await until(async () => proofs > 0, 'its stream is ended, and it tries to come back')
    expect(told).toEqual([true])
    await other.close()
  })

  it('gives up on a run that its node cannot open', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    one.link.meddle.toNode = frame => {
      if (frame.body.case === 'assign') frame.body.value.inputSealed = new Uint8Array(64)
      return [frame]
    }
    const { id } = await start('echo', 'x')
    const run = await ended(id)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'node_unavailable' }, tokensIn: 0 })
  })

  it('refuses an order that it cannot keep, or whose id is a path, leaves words that no store takes, and goes on', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { tools: ['wait_signal'] } })
    const bad: [string, Partial<Assign>][] = [
      ['', { epoch: 2n ** 63n }],
      ['', { createdUnixMs: 2n ** 62n }],
      ['../../x', { runId: '../../x' }],
      ['', { sessionId: '../../x' }],
    ]
    const refused: string[] = []
    one.link.meddle.toControl = frame => {
      const frames = frame.body.case === 'bundle' ? frame.body.value.frames : [frame]
      for (const { body } of frames) if (body.case === 'accept' && !body.value.ok) refused.push(body.value.runId)
      return [frame]
    }
    for (const [runId, change] of bad) {
      one.link.meddle.toNode = frame => {
        if (frame.body.case === 'assign') Object.assign(frame.body.value, change)
        return [frame]
      }
      const made = await start('echo', 'x')
      await until(async () => refused.includes(runId || made.id), 'the order is refused')
      one.link.meddle.toNode = frame => [frame]
      await control.call('POST', `/v1/runs/${made.id}/cancel`, {})
    }
    const waits = await start('echo', '/call wait_signal {"name":"go"}')
    const parked = () =>
      one.db.execute({ sql: "select 1 from runs where id = ? and parked = 'signal'", args: [waits.id] })
    await until(async () => (await parked()).rows.length === 1, 'the run waits')
    for (const said of ['null', '1', '{"id":{},"name":{},"value":{},"atMs":"x"}']) {
      const { publicKey } = one.identity.poolKeys
      const valueSealed = await sealTo(publicKey, utf8(said), signalAad(waits.id))
      one.link.meddle.toNode = frame => {
        if (frame.body.case === 'signal') frame.body.value.valueSealed = valueSealed
        return [frame]
      }
      await control.call('POST', `/v1/runs/${waits.id}/signals/go`, { value: 1 })
    }
    const unsent = () => control.db.execute('select 1 from node_frames')
    await until(async () => (await unsent()).rows.length === 0, 'the signals have arrived')
    one.link.meddle.toNode = frame => [frame]
    await control.call('POST', `/v1/runs/${waits.id}/signals/go`, { value: 1 })
    expect(await ended(waits.id)).toMatchObject({ status: 'succeeded' })
  })

  it('keeps a run queued while the nodes are away, and cancels one that waits', async () => {
    const one = await node()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    await one.kill()
    const [first, second] = [await start('echo', 'first'), await start('echo', 'second')]
    expect(await control.json<Run>(200, 'GET', `/v1/runs/${first.id}`)).toMatchObject({
      status: 'queued',
      dataAvailable: false,
    })
    await control.json(200, 'POST', `/v1/runs/${second.id}/cancel`, { reason: 'no more' })
    expect(await summary(second.id)).toMatchObject({ status: 'cancelled', cancelReason: 'no more' })
    await one.restart()
    expect(await ended(first.id)).toMatchObject({ status: 'succeeded' })
    expect(await summary(second.id)).toMatchObject({ status: 'cancelled' })
  })
})
