import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { createLog } from '../../shared/log/log.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import {
  type Delivery,
  type Webhook,
  type WebhookBody,
  type WebhookCreated,
  type WebhookTested,
  webhookBody,
} from '../../shared/wire/runtime/webhook.ts'
import { api } from './api.ts'
import { nodeFixture, until } from './node-fixture.ts'

interface Received {
  headers: IncomingMessage['headers']
  text: string
  body: WebhookBody
}

/** A runtime, and a server of the test that it may reach. */
async function hookFixture(options: Parameters<typeof api>[0] = {}) {
  const received: Received[] = []
  const waiting: (() => void)[] = []
  let status = 204
  const server = createServer(async (request, answer) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    received.push({ headers: request.headers, text, body: JSON.parse(text) as WebhookBody })
    answer.writeHead(status).end()
    for (const resolve of waiting.splice(0)) resolve()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const lines: string[] = []
  const log = createLog({ filter: { all: 'trace', byTarget: new Map() }, write: line => lines.push(line) })
  const egress = nodeEgress({ rule: outboundRule([readAllowEntry('127.0.0.1')!]) })
  const made = await api({ egress, log, masterKey: new Uint8Array(32).fill(9), ...options })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    ...made,
    received,
    origin,
    lines,
    answerWith: (next: number) => {
      status = next
    },
    create: (body: object = {}) => made.json<WebhookCreated>(201, 'POST', '/v1/webhooks', { url: origin, ...body }),
    async run(prompt: string, manifest: object = {}): Promise<Run> {
      await made.json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
      return made.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt } })
    },
    /** The first message of a type, once it is there. */
    async told(type: string): Promise<Received> {
      for (;;) {
        const found = received.find(one => one.body.type === type)
        if (found) return found
        await new Promise<void>(resolve => waiting.push(resolve))
      }
    },
    async close() {
      await made.close()
      await egress.close()
      server.close()
    },
  }
}

/** Checks a message as a receiver does, with none of our code. */
function verify({ headers, text }: Received, secret: string): boolean {
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${text}`
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const expected = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  return String(headers['webhook-signature']).split(' ').includes(expected)
}

describe('a webhook', () => {
  it('is told that a run has ended, signed, with ids and counters and nothing of the run', async () => {
    const fixture = await hookFixture()
    const { secret, id, ...made } = await fixture.create({ events: ['run.succeeded'] })
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(made).toMatchObject({ url: fixture.origin, events: ['run.succeeded'], enabled: true })
    const run = await fixture.run('the prompt is CANARY-IN')
    const message = await fixture.told('run.succeeded')
    expect(verify(message, secret)).toBe(true)
    expect(verify({ ...message, text: message.text.replace('succeeded', 'failed') }, secret)).toBe(false)
    expect(webhookBody.parse(message.body)).toEqual(message.body)
    const { tokensIn, tokensOut } = await fixture.json<Run>(200, 'GET', `/v1/runs/${run.id}`)
    expect(message.body).toMatchObject({
      id: message.headers['webhook-id'],
      tenantId: 'default',
      data: {
        runId: run.id,
        agentName: 'worker',
        status: 'succeeded',
        trigger: 'api',
        tokensIn,
        tokensOut,
        costUsd: 0,
      },
    })
    expect(tokensIn).toBeGreaterThan(0)
    expect(message.text).not.toContain('CANARY')
    expect(Math.abs(Date.now() / 1000 - Number(message.headers['webhook-timestamp']))).toBeLessThan(30)
    const list = async () => fixture.json<Delivery[]>(200, 'GET', `/v1/webhooks/${id}/deliveries`)
    while ((await list())[0]?.outcome !== 'delivered') await new Promise(resolve => setTimeout(resolve, 5))
    expect(await list()).toEqual([
      ...[
        {
          id: message.body.id,
          type: 'run.succeeded',
          attempt: 1,
          outcome: 'delivered',
          status: 204,
          at: message.body.at,
        },
      ],
    ])
    await fixture.close()
  })

  it('is told of failures, cancellations, questions, their expiry and anomalies', async () => {
    // Its time can be moved on, and goes on by itself.
    const moved = manualClock(new Date(0))
    const clock = { ...systemClock, now: () => new Date(Date.now() + moved.monotonic()) }
    const fixture = await hookFixture({ clock, limits: { recoveryMs: 50 } })
    await fixture.create()
    const asked = await fixture.run('/call wait {"seconds":0}', {
      tools: ['wait'],
      approvals: { tools: ['wait'], expiresMinutes: 5 },
    })
    expect((await fixture.told('run.waiting')).body.data).toMatchObject({ runId: asked.id, status: 'waiting' })
    moved.advance(6 * 60_000)
    const [approval] = await fixture.json<Approval[]>(200, 'GET', `/v1/runs/${asked.id}/approvals`)
    expect((await fixture.told('approval.expired')).body.data).toMatchObject({
      approvalId: approval!.id,
      runId: asked.id,
    })
    expect((await fixture.told('run.failed')).body.data).toMatchObject({
      runId: asked.id,
      errorCode: 'approval_expired',
    })

    const parked = await fixture.run('/call wait {"seconds":900}', { tools: ['wait'] })
    await fixture.json(200, 'POST', `/v1/runs/${parked.id}/cancel`, { reason: 'enough' })
    expect((await fixture.told('run.cancelled')).body.data).toMatchObject({ runId: parked.id })

    const odd = await fixture.run('/call*4 wait {"seconds":0}', { tools: ['wait'], anomalies: { loopIterations: 2 } })
    expect((await fixture.told('anomaly.detected')).body.data).toMatchObject({
      runId: odd.id,
      kind: 'runaway_loop',
      observed: 3,
      limit: 2,
    })
    await fixture.told('run.succeeded')
    const types = fixture.received.map(one => one.body.type)
    expect(types.toSorted()).toEqual(
      [
        'run.waiting',
        'approval.expired',
        'run.failed',
        'run.cancelled',
        'anomaly.detected',
        'run.succeeded',
      ].toSorted(),
    )
    expect(new Set(fixture.received.map(one => one.body.id)).size).toBe(types.length)
    await fixture.close()
  })

  it('gets the same events of runs on a node, each once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-webhooks-'))
    const moved = manualClock(new Date(0))
    const clock = { ...systemClock, now: () => new Date(Date.now() + moved.monotonic()) }
    const fixture = await hookFixture({ clock, embeddedNode: false })
    await fixture.create()
    const node = await nodeFixture(fixture, folder, { clock, limits: { recoveryMs: 50 } })
    const odd = await fixture.run('/call*4 wait {"seconds":0}', { tools: ['wait'], anomalies: { loopIterations: 2 } })
    // What was observed is an event's payload, which stays on the node.
    const anomaly = await fixture.told('anomaly.detected')
    expect(webhookBody.parse(anomaly.body).data).toEqual({ runId: odd.id, agentName: 'worker' })
    await fixture.told('run.succeeded')

    const cancelled = await fixture.run('/call wait {"seconds":900}', { tools: ['wait'] })
    await until(
      async () => (await fixture.json<unknown[]>(200, 'GET', `/v1/runs/${cancelled.id}/steps`)).length > 1,
      'it waits',
    )
    await fixture.json(200, 'POST', `/v1/runs/${cancelled.id}/cancel`, {})
    await until(
      async () => (await fixture.call('GET', `/v1/runs/${cancelled.id}/receipt`)).status === 200,
      'its node has sealed it',
    )

    const asked = async (onExpire: string) => {
      const approvals = { tools: ['wait'], expiresMinutes: 5, onExpire }
      const { id } = await fixture.run('/call wait {"seconds":0}', { tools: ['wait'], approvals })
      const [approval] = await until(async () => {
        const found = await fixture.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`)
        return found.length > 0 && found
      }, 'it asks')
      moved.advance(6 * 60_000)
      await until(
        async () => isTerminal((await fixture.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)).status),
        'it ends',
      )
      const expired = () =>
        fixture.received.find(({ body: { data } }) => data.approvalId === approval!.id && data.stepId)
      const event = await until(async () => expired(), 'its event has come')
      expect(event.body).toMatchObject({ type: 'approval.expired', data: { runId: id, agentName: 'worker' } })
      expect(await fixture.json<Approval>(200, 'GET', `/v1/approvals/${approval!.id}`)).toMatchObject({
        status: 'expired',
      })
    }
    await asked('fail')
    await asked('reject')
    const ended = ['run.succeeded', 'run.cancelled', 'run.failed', 'run.succeeded']
    const questions = ['run.waiting', 'approval.expired', 'run.waiting', 'approval.expired']
    const all = ['anomaly.detected', ...ended, ...questions].toSorted()
    // What is due together is sent together, and arrives in any order.
    await until(async () => fixture.received.length >= all.length, 'all events have come')
    expect(fixture.received.map(one => one.body.type).toSorted()).toEqual(all)
    await node.close()
    await fixture.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('is told of a window that got no run', async () => {
    const clock = manualClock(new Date('2026-01-02T03:04:05.000Z'))
    const fixture = await hookFixture({ clock, timers: false })
    await fixture.create()
    await fixture.json(201, 'POST', '/v1/agents', { name: 'worker' })
    const { id } = await fixture.json<Schedule>(201, 'POST', '/v1/schedules', {
      agentName: 'worker',
      cronExpr: '* * * * *',
    })
    await fixture.db.execute("update agents set deleted_ms = 1 where name = 'worker'")
    clock.advance(60_000)
    await fixture.runtime.scheduled()
    expect(fixture.received.map(one => one.body)).toMatchObject([
      {
        type: 'schedule.refused',
        data: { scheduleId: id, agentName: 'worker', reason: 'agent_not_found', windowAt: '2026-01-02T03:05:00.000Z' },
      },
    ])
    await fixture.close()
  })

  it('gets what it missed later, and what was given up when somebody asks for it', async () => {
    const clock = manualClock(new Date('2026-01-02T03:04:05.000Z'))
    const fixture = await hookFixture({ clock, timers: false })
    const { id, secret } = await fixture.create({ events: ['run.succeeded'] })
    fixture.answerWith(500)
    const run = await fixture.run('hello')
    await (await fixture.events(`/v1/runs/${run.id}/events`)).all()
    await fixture.runtime.scheduled()
    await fixture.runtime.scheduled()
    expect(fixture.received.length).toBe(1)
    const path = `/v1/webhooks/${id}/deliveries`
    const [retrying] = await fixture.json<Delivery[]>(200, 'GET', `${path}?outcome=retrying`)
    expect(retrying).toMatchObject({ attempt: 1, status: 500, error: 'answered 500', nextAt: expect.any(String) })
    for (let attempt = 2; attempt <= 9; attempt++) {
      clock.advance(8 * 3_600_000)
      await fixture.runtime.scheduled()
    }
    expect(fixture.received.length).toBe(9)
    expect(new Set(fixture.received.map(one => one.headers['webhook-id'])).size).toBe(1)
    expect(fixture.received.every(one => verify(one, secret))).toBe(true)
    const [failed] = await fixture.json<Delivery[]>(200, 'GET', `${path}?outcome=failed`)
    expect(failed).toMatchObject({ id: retrying!.id, attempt: 9, outcome: 'failed' })
    fixture.answerWith(200)
    await fixture.json(200, 'POST', `${path}/${failed!.id}/redeliver`)
    await fixture.runtime.scheduled()
    expect(await fixture.json<Delivery[]>(200, 'GET', path)).toMatchObject([{ id: failed!.id, outcome: 'delivered' }])
    expect((await fixture.call('POST', `${path}/nothing/redeliver`)).status).toBe(404)
    await fixture.close()
  })

  it('keeps its secret sealed, out of logs, and shows it once', async () => {
    const fixture = await hookFixture()
    const body = JSON.stringify({ url: fixture.origin })
    const create = () => fixture.call('POST', '/v1/webhooks', JSON.parse(body), { 'idempotency-key': 'one' })
    const first = (await (await create()).json()) as WebhookCreated
    const second = (await (await create()).json()) as WebhookCreated
    expect(second).toEqual({ ...first, secret: '***' })
    const [listed] = await fixture.json<Webhook[]>(200, 'GET', '/v1/webhooks')
    expect(listed).not.toHaveProperty('secret')
    expect(await fixture.json<WebhookTested>(200, 'POST', `/v1/webhooks/${first.id}/test`)).toMatchObject({
      success: true,
      status: 204,
      latencyMs: expect.any(Number),
    })
    expect(fixture.received[0]!.body).toMatchObject({ type: 'webhook.test', data: {} })
    expect(verify(fixture.received[0]!, first.secret)).toBe(true)
    const raw = first.secret.replace('whsec_', '')
    for (const { name } of (await fixture.db.execute("select name from sqlite_master where type = 'table'")).rows) {
      expect(JSON.stringify((await fixture.db.execute(`select * from ${String(name)}`)).rows)).not.toContain(raw)
    }
    expect(fixture.lines.join('\n')).not.toContain(raw)
    await fixture.close()
  })

  it('is changed, switched off and deleted, inside its tenant', async () => {
    const fixture = await hookFixture()
    const { id } = await fixture.create()
    const changed = await fixture.json<Webhook>(200, 'PUT', `/v1/webhooks/${id}`, {
      events: ['run.failed'],
      enabled: false,
    })
    expect(changed).toMatchObject({ events: ['run.failed'], enabled: false, url: fixture.origin })
    expect((await fixture.call('PUT', `/v1/webhooks/${id}`, { events: ['run.exploded'] })).status).toBe(400)
    const tenant = await fixture.json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })
    const { rawKey } = await fixture.json<{ rawKey: string }>(201, 'POST', `/v1/tenants/${tenant.id}/api-keys`, {
      name: 'k',
    })
    const foreign = { authorization: `Bearer ${rawKey}` }
    expect((await fixture.call('DELETE', `/v1/webhooks/${id}`, undefined, foreign)).status).toBe(403)
    expect((await fixture.call('GET', `/v1/webhooks/${id}/deliveries`, undefined, foreign)).status).toBe(403)
    expect((await fixture.call('DELETE', `/v1/webhooks/${id}`)).status).toBe(204)
    expect((await fixture.call('DELETE', `/v1/webhooks/${id}`)).status).toBe(404)
    await fixture.close()
  })

  it('is one of at most a hundred', async () => {
    const fixture = await hookFixture()
    for (let made = 0; made < 100; made++) await fixture.create()
    const refused = await fixture.json<object>(400, 'POST', '/v1/webhooks', { url: fixture.origin })
    expect(refused).toMatchObject({ code: 'validation_failed', error: 'a tenant has at most 100 webhooks' })
    await fixture.close()
  })

  it('cannot point inside', async () => {
    const fixture = await hookFixture()
    const addresses = [
      'http://169.254.169.254/',
      'http://10.0.0.1/',
      'http://[::1]:8080/',
      'http://u:p@example.com/',
      'ftp://x/',
    ]
    for (const url of addresses) {
      const answer = await fixture.call('POST', '/v1/webhooks', { url })
      expect([url, answer.status]).toEqual([url, 400])
      expect(await answer.json()).toMatchObject({ details: [{ path: 'url' }] })
    }
    await fixture.close()
  })
})

it('commits a delivery with the end of its run: no moment shows one without the other', async () => {
  const db = await openDb(':memory:')
  const moments: [ended: number, deliveries: number][] = []
  const watched = {
    ...db,
    async write(statements: Parameters<typeof db.write>[0]) {
      const results = await db.write(statements)
      const { rows } = await db.execute(
        `select (select count(*) from runs where status = 'succeeded'),
          (select count(*) from webhook_deliveries where type = 'run.succeeded')`,
      )
      moments.push([Number(rows[0]![0]), Number(rows[0]![1])])
      return results
    },
  }
  const fixture = await hookFixture({ db: watched, timers: false })
  await fixture.create()
  for (let count = 0; count < 3; count++) {
    const run = await fixture.run('hello')
    await (await fixture.events(`/v1/runs/${run.id}/events`)).all()
  }
  expect(moments.every(([ended, deliveries]) => ended === deliveries)).toBe(true)
  expect(moments.at(-1)).toEqual([3, 3])
  await fixture.close()
})
