import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runNode } from '../../node-agent/run.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { type Api, api } from './api.ts'
import { type NodeFixture, nodeFixture, TIMES, until } from './node-fixture.ts'

const LIMITS = { leaseMs: 1500, recoveryMs: 500 }
const masterKey = new Uint8Array(32).fill(7)

let folder: string
let sqld: Sqld
let control: Api
let nodes: NodeFixture[]

const online = (made: NodeFixture) =>
  until(async () => {
    const { status } = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${made.identity.nodeId}`)
    return status === 'online'
  }, 'the node is online')
const drain = (made: NodeFixture, on: boolean) =>
  control.json(200, 'POST', `/v1/nodes/${made.identity.nodeId}/${on ? 'drain' : 'undrain'}`, {})
const start = (agentName: string, prompt: string) =>
  control.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt } })
const summary = (id: string) => control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
const ended = (id: string) =>
  until(
    async () => {
      const run = await summary(id)
      return isTerminal(run.status) && run
    },
    `run ${id} ends`,
    20_000,
  )

/** Its machine is gone: it sends nothing more, and nothing of its reaches the store. */
async function dies(made: NodeFixture): Promise<void> {
  made.link.cut()
  made.db.close()
  await made.tunnel.close()
  await made.runtime.close(0).catch(() => undefined)
}

/** Everything that the control plane knows of a run follows from what stands in the store of the pool, and is signed. */
async function holds(id: string): Promise<JournalExport> {
  const journal = await control.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
  expect(journal.events.map(({ seq }) => seq)).toEqual(journal.events.map((_, at) => at + 1))
  const { rows } = await control.db.execute({
    sql: `select e.value ->> 4 as hash from remote_events as r, json_each(r.events) as e
      where r.run_id = ? order by r.seq, e.key`,
    args: [id],
  })
  expect(rows.map(row => row.hash)).toEqual(journal.events.map(({ hash }) => hash))
  const receipt = await control.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
  const verified = await control.json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })
  expect(verified).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
  return journal
}

if (await sqldAvailable()) {
  describe('nodes of a pool with one store', () => {
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'waybill-shared-pool-'))
      sqld = await startSqld()
      control = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, tunnel: TIMES })
      nodes = []
      for (const name of ['one', 'two']) {
        const made = await nodeFixture(control, folder, { name, sharedUrl: sqld.primaryUrl, limits: LIMITS })
        nodes.push(made)
        await online(made)
      }
      await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
    })
    afterEach(async () => {
      for (const node of nodes) await node.close().catch(() => undefined)
      await control.close()
      await sqld.stop()
      await rm(folder, { recursive: true, force: true })
    })

    it('take up the run of one that died, each event once, and the control plane hears who has it', async () => {
      const [one, two] = nodes as [NodeFixture, NodeFixture]
      // Until its turn comes: any of them takes what is due in the store.
      await two.kill()
      const before = await start('slow', 'before')
      expect(await ended(before.id)).toMatchObject({ nodeId: one.identity.nodeId })
      const made = await start('slow', '/call*8 wait {"seconds":0.2}')
      await until(async () => {
        const sql = 'select event_seq from remote_runs where run_id = ?'
        const { rows } = await control.db.execute({ sql, args: [made.id] })
        return Number(rows[0]?.[0]) >= 5
      }, 'it is under way')
      await dies(one)
      await two.restart()
      expect(await ended(made.id)).toMatchObject({ status: 'succeeded', nodeId: two.identity.nodeId })
      const { events } = await holds(made.id)
      const by = events.flatMap(({ meta }) => (meta as { nodeId?: string }).nodeId ?? [])
      expect([by[0], by.at(-1)]).toEqual([one.identity.nodeId, two.identity.nodeId])
      // What the dead one had is read from the other.
      const read = await control.json<Run>(200, 'GET', `/v1/runs/${before.id}`)
      expect(read.input).toEqual({ prompt: 'before' })
      // It comes back and changes nothing.
      await one.restart()
      await online(one)
      expect(await ended((await start('slow', 'after')).id)).toMatchObject({ status: 'succeeded' })
      expect(await summary(made.id)).toMatchObject({ status: 'succeeded', nodeId: two.identity.nodeId })
    })

    it('set aside what ended the process of another, which the control plane hears from the one that did', async () => {
      const [one, two] = nodes as [NodeFixture, NodeFixture]
      await two.kill()
      const made = await start('slow', '/call*8 wait {"seconds":0.2}')
      await until(async () => (await summary(made.id)).status === 'running', 'it runs')
      await dies(one)
      const store = await openDb(sqld.primaryUrl)
      await store.execute({
        sql: `update runs set recoveries = 3, due_ms = 0, recovery_seq = (select max(seq) from events where run_id = ?1) where id = ?1`,
        args: [made.id],
      })
      store.close()
      await two.restart()
      await until(async () => (await summary(made.id)).parked?.reason === 'poisoned', 'it is set aside')
      expect(await summary(made.id)).toMatchObject({ status: 'waiting', nodeId: two.identity.nodeId })
      await control.call('POST', `/v1/runs/${made.id}/signals/resume`, { value: null })
      expect(await ended(made.id)).toMatchObject({ status: 'succeeded', nodeId: two.identity.nodeId })
      expect(await summary(made.id)).not.toHaveProperty('parked')
      await holds(made.id)
    })

    it('tell of a run that ended on one that died before it could say so', async () => {
      const [one, two] = nodes as [NodeFixture, NodeFixture]
      await two.kill()
      const made = await start('slow', '/call*3 wait {"seconds":0.1}')
      await until(async () => (await summary(made.id)).status === 'running', 'it runs')
      one.link.cut()
      await until(async () => {
        const { rows } = await one.db.execute({ sql: 'select status from runs where id = ?', args: [made.id] })
        return rows[0]?.status === 'succeeded'
      }, 'it has ended in the store')
      expect(await summary(made.id)).toMatchObject({ status: 'running' })
      await dies(one)
      await two.restart()
      expect(await ended(made.id)).toMatchObject({ status: 'succeeded', nodeId: two.identity.nodeId })
      await holds(made.id)
    })

    it('give the order to end a run to the one that has it now', async () => {
      const [one, two] = nodes as [NodeFixture, NodeFixture]
      await drain(two, true)
      const made = await start('slow', '/call*40 wait {"seconds":0.2}')
      await until(async () => (await summary(made.id)).status === 'running', 'it runs')
      await dies(one)
      await control.json(200, 'POST', `/v1/runs/${made.id}/cancel`, {})
      expect(await summary(made.id)).toMatchObject({ status: 'cancelled' })
      await until(
        async () => (await control.call('GET', `/v1/runs/${made.id}/receipt`)).ok,
        'the receipt is there',
        20_000,
      )
      await holds(made.id)
      const { rows } = await two.db.execute({ sql: 'select status from runs where id = ?', args: [made.id] })
      expect(rows[0]?.status).toBe('cancelled')
    })

    it('are given what one that died was still to do: a signal to a run that waits, and an order that it never saw', async () => {
      const [one, two] = nodes as [NodeFixture, NodeFixture]
      await drain(two, true)
      await control.json(201, 'POST', '/v1/agents', { name: 'signalled', manifest: { tools: ['wait_signal'] } })
      const waits = await start('signalled', '/call wait_signal {"name":"go"}')
      await until(async () => {
        const sql = 'select event_seq from remote_runs where run_id = ?'
        const { rows } = await control.db.execute({ sql, args: [waits.id] })
        return Number(rows[0]?.[0]) === 3
      }, 'it waits')
      one.link.meddle.toNode = frame => (frame.body.case === 'assign' ? [] : [frame])
      const unseen = await start('slow', 'unseen')
      await until(async () => {
        const { rows } = await control.db.execute({
          sql: 'select state from remote_runs where run_id = ?',
          args: [unseen.id],
        })
        return rows[0]?.state === 'offered'
      }, 'it is offered')
      await dies(one)
      await drain(two, false)
      await control.json(204, 'POST', `/v1/runs/${waits.id}/signals/go`, { value: 1 })
      expect(await ended(waits.id)).toMatchObject({ status: 'succeeded', nodeId: two.identity.nodeId })
      await holds(waits.id)
      expect(await ended(unseen.id)).toMatchObject({ status: 'succeeded', nodeId: two.identity.nodeId })
      await holds(unseen.id)
    })

    it('go on with the sessions of one that died', async () => {
      const [one, two] = nodes as [NodeFixture, NodeFixture]
      await drain(two, true)
      const { id } = await control.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'slow' })
      const send = (content: string) => control.json<TurnReply>(200, 'POST', `/v1/sessions/${id}/messages`, { content })
      await send('first')
      await dies(one)
      await drain(two, false)
      expect(await send('second')).toMatchObject({ status: 'completed', text: expect.stringContaining('second') })
      const { messages } = await control.json<Session>(200, 'GET', `/v1/sessions/${id}`)
      expect(messages?.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual(['first', 'second'])
    })
  })
}

it('a node that is to share a store is refused without its address, before it does anything', async () => {
  const vars = { PLATFORM_CONTROL_URL: 'http://127.0.0.1:1', PLATFORM_NODE_POOL_SHARED: '1' }
  await expect(runNode(vars, { say: () => undefined })).rejects.toThrow(/^PLATFORM_DATABASE_URL: .*libSQL server/)
})

it('a node with another store takes no run of a node, whatever it says', async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-shared-pool-'))
  control = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, tunnel: TIMES })
  const one = await nodeFixture(control, folder, { name: 'one' })
  await online(one)
  await control.json(201, 'POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })
  const made = await start('slow', '/call wait {"seconds":60}')
  await until(async () => (await summary(made.id)).status === 'running', 'it runs')
  const two = await nodeFixture(control, folder, { name: 'two' })
  await online(two)
  await two.db.write([
    { sql: `insert into tunnel_runs (run_id, epoch) values (?, 1)`, args: [made.id] },
    { sql: `insert into tunnel_outbox (frame) values (json_object('t', 'takeover', 'run', ?))`, args: [made.id] },
  ])
  two.tunnel.reportSoon(true)
  await until(async () => {
    const metrics = await (await control.call('GET', '/metrics')).text()
    return metrics.includes('waybill_tunnel_frames_dropped_total{reason="not_its_run"} 1')
  }, 'it is dropped')
  expect(await summary(made.id)).toMatchObject({ status: 'running', nodeId: one.identity.nodeId })
  await one.close()
  await two.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})
