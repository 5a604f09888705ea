import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { OutboundDenied } from '../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { silentLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { retryDelayMs, webhookDelivery } from './deliver.ts'
import { enqueueEvent } from './enqueue.ts'
import { newWebhookSecret } from './signature.ts'
import { webhookStore } from './store.ts'

const SECRET = newWebhookSecret()
const START = new Date('2026-01-02T03:04:05.000Z')

interface FixtureOptions {
  db?: Db
  clock?: ReturnType<typeof manualClock>
  fetch: EgressClient['fetch']
  /** Short only where the end of it is what a test waits for: a busy machine takes longer for anything else. */
  deadlineMs?: number
}

/** An outbox on a real database; only the far end is of the test. */
async function outbox({ db: given, clock = manualClock(START), fetch, deadlineMs = 60_000 }: FixtureOptions) {
  const db = given ?? (await openDb(':memory:'))
  await migrate(db, 'runtime', runtimeSteps)
  const store = webhookStore(db)
  const metrics = createMetrics()
  const made = webhookDelivery({
    store,
    fetch,
    clock,
    random: () => 0.5,
    log: silentLog(),
    deadlineMs,
    openSecret: async () => SECRET,
    deliveries: metrics.counter('deliveries', 'd'),
  })
  return {
    db,
    store,
    clock,
    metrics,
    webhookDelivery: made,
    async add(url: string, more: object = {}): Promise<string> {
      const id = uuidv7()
      const row = {
        id,
        tenantId: 'default',
        url,
        events: [],
        enabled: true,
        sealedSecret: '',
        createdMs: 1,
        updatedMs: 1,
      }
      await db.write([store.insert({ ...row, ...more })])
      return id
    },
    async say(count = 1): Promise<void> {
      for (let at = 0; at < count; at++) {
        await db.write([
          enqueueEvent(uuidv7, {
            tenantId: 'default',
            type: 'run.failed',
            atMs: clock.now().getTime(),
            data: { runId: String(at), costNano: 1_500_000, errorCode: null },
          }),
        ])
      }
    },
    list: (id: string) => store.deliveries(id, {}, { limit: 200, after: undefined }),
  }
}

const ok = async () => new Response('thanks')

describe('the outbox', () => {
  it('keeps what came of a delivery that began anew while an earlier attempt of it was under way', async () => {
    const { db, store, clock, add, say, list } = await outbox({ fetch: ok })
    const id = await add('https://a.example')
    await say()
    const underWay = { ofWebhook: new Map<string, number>(), ofTenant: new Map<string, number>() }
    const take = async () => {
      const taking = { nowMs: clock.now().getTime(), leaseMs: 60_000, most: 9, mostOfWebhook: 9, underWay }
      return (await store.take(taking))[0]!
    }
    const first = await take()
    clock.advance(1000)
    await store.redeliver(id, first.eventId, clock.now().getTime())
    const second = await take()
    await store.settle(second, { outcome: 'delivered', status: 200, error: undefined, dueMs: undefined })
    await store.settle(first, { outcome: 'retrying', status: 503, error: 'answered 503', dueMs: 1 })
    expect(await list(id)).toMatchObject([{ outcome: 'delivered', status: 200, dueMs: undefined }])
    db.close()
  })

  it('is filled for webhooks of the tenant that are on and want the event', async () => {
    const { db, add, say, list } = await outbox({ fetch: ok })
    await db.execute("insert into tenants values ('other', '\"o\"', 0)")
    const ids = [
      await add('https://a.example', { events: ['run.failed', 'run.waiting'] }),
      await add('https://b.example'),
      await add('https://c.example', { events: ['run.succeeded'] }),
      await add('https://d.example', { enabled: false }),
      await add('https://e.example', { tenantId: 'other' }),
    ]
    await say()
    expect(await Promise.all(ids.map(async id => (await list(id)).length))).toEqual([1, 1, 0, 0, 0])
    db.close()
  })

  it('sends ids and counters, with money as dollars, and the same bytes at every attempt', async () => {
    const bodies: string[] = []
    const {
      db,
      add,
      say,
      webhookDelivery: made,
      clock,
      metrics,
    } = await outbox({
      fetch: async (_url, { body }) => {
        bodies.push(String(body))
        return new Response(null, { status: bodies.length < 3 ? 503 : 204 })
      },
    })
    await add('https://a.example')
    await say()
    for (let attempt = 0; attempt < 3; attempt++) {
      await made.once()
      clock.advance(60_000)
    }
    expect(JSON.parse(bodies[0]!)).toEqual({
      id: expect.any(String),
      type: 'run.failed',
      at: '2026-01-02T03:04:05.000Z',
      tenantId: 'default',
      data: { runId: '0', costUsd: 0.0015 },
    })
    expect(new Set(bodies).size).toBe(1)
    expect(metrics.text()).toContain('deliveries{outcome="retrying"} 2')
    expect(metrics.text()).toContain('deliveries{outcome="delivered"} 1')
    db.close()
  })

  it('tries nine times over most of a day, then gives up until somebody sends it again', async () => {
    let up = false
    const at: number[] = []
    const {
      db,
      add,
      say,
      webhookDelivery: made,
      clock,
      store,
    } = await outbox({
      fetch: async () => {
        at.push(clock.now().getTime() - START.getTime())
        return new Response(null, { status: up ? 200 : 500 })
      },
    })
    const id = await add('https://a.example')
    await say()
    for (;;) {
      const due = await store.nextDue()
      if (due === undefined) break
      clock.advance(Math.max(0, due - clock.now().getTime()))
      await made.once()
    }
    // Half of the jitter on each of the eight delays, and none on the last, which is at its limit.
    const delays = [10, 30, 90, 270, 810, 2430, 7290].map(seconds => seconds * 1100).concat(21_600_000)
    expect(at).toEqual([0, ...delays.map((_, index) => delays.slice(0, index + 1).reduce((sum, one) => sum + one, 0))])
    const failed = await store.deliveries(id, { outcome: 'failed' }, { limit: 10, after: undefined })
    expect(failed).toMatchObject([{ attempt: 9, status: 500, error: 'answered 500', dueMs: undefined }])
    up = true
    await store.redeliver(id, failed[0]!.eventId, clock.now().getTime())
    await made.once()
    expect(await store.deliveries(id, {}, { limit: 10, after: undefined })).toMatchObject([
      { outcome: 'delivered', attempt: 1, status: 200, eventId: failed[0]!.eventId },
    ])
    db.close()
  })

  it.each([true, false])('sends again in time after a clock was set back: while it runs: %s', async running => {
    let up = false
    const options = { fetch: async () => new Response(null, { status: up ? 200 : 500 }) }
    const first = await outbox(options)
    const { db, clock } = first
    const id = await first.add('https://a.example')
    clock.set(365 * 86_400_000)
    await first.say()
    first.webhookDelivery.start()
    await vi.waitFor(async () => expect(await first.list(id)).toMatchObject([{ outcome: 'retrying' }]))
    up = true
    clock.set(-365 * 86_400_000)
    const now = running ? first : await outbox({ ...options, db, clock })
    if (!running) {
      await first.webhookDelivery.stop(0)
      now.webhookDelivery.start()
    }
    await vi.waitFor(async () => expect(await now.list(id)).toMatchObject([{ outcome: 'delivered' }]), 5000)
    await now.webhookDelivery.stop(0)
    db.close()
  })

  it.each([
    ['nobody answers in time', /^no answer in 0\.05 seconds$/, hanging],
    ['the rule refuses the address', /^private/, () => Promise.reject(new OutboundDenied('private address'))],
    ['nobody listens', /^could not be reached: ECONNREFUSED$/, () => Promise.reject(refusedConnection())],
    ['it says go elsewhere', /^answered 302, and redirects are not followed$/, async () => elsewhere()],
  ] as [string, RegExp, EgressClient['fetch']][])('says what went wrong when %s', async (_what, message, fetch) => {
    const {
      db,
      add,
      say,
      webhookDelivery: made,
      list,
    } = await outbox({ fetch, ...(fetch === hanging && { deadlineMs: 50 }) })
    const id = await add('https://a.example')
    await say()
    await made.once()
    expect(await list(id)).toMatchObject([{ outcome: 'retrying', error: expect.stringMatching(message) }])
    db.close()
  })

  it('counts an answer as delivered whose body does not end, and does not read it all', async () => {
    let sent = 0
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += 4096
          controller.enqueue(new Uint8Array(4096))
        },
      })
    const { db, add, say, webhookDelivery: made, list } = await outbox({ fetch: async () => new Response(endless()) })
    const id = await add('https://a.example')
    await say()
    await made.once()
    expect(await list(id)).toMatchObject([{ outcome: 'delivered' }])
    expect(sent).toBeLessThan(64 * 1024)
    db.close()
  })

  it('lets no webhook that is slow hold up the others', async () => {
    const held: (() => void)[] = []
    const seen: Record<string, number> = {}
    const fixture = await outbox({
      fetch: async url => {
        seen[url.host] = (seen[url.host] ?? 0) + 1
        if (url.host === 'slow.example') await new Promise<void>(resolve => held.push(resolve))
        return new Response(null, { status: 204 })
      },
    })
    await fixture.add('https://slow.example')
    const quick = await fixture.add('https://quick.example')
    await fixture.say(40)
    fixture.webhookDelivery.start()
    while (
      (await fixture.store.deliveries(quick, { outcome: 'delivered' }, { limit: 200, after: undefined })).length < 40
    ) {
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    expect(seen).toEqual({ 'quick.example': 40, 'slow.example': 4 })
    for (const release of held.splice(0)) release()
    const stopped = fixture.webhookDelivery.stop(1000)
    for (const release of held.splice(0)) release()
    await stopped
    fixture.db.close()
  })

  it('sends what is new before the backlog of receivers that are slow, of its own tenant and of others', async () => {
    let slow = 0
    const fixture = await outbox({
      fetch: async url => {
        if (url.host === 'slow.example') {
          slow++
          await new Promise(resolve => setTimeout(resolve, 50))
        }
        return new Response(null, { status: 204 })
      },
    })
    const { db, clock, add } = fixture
    for (const tenantId of ['b', 'c'])
      await db.execute(`insert into tenants values ('${tenantId}', '"${tenantId}"', 0)`)
    for (const tenantId of ['default', 'b'])
      for (let at = 0; at < 4; at++) await add('https://slow.example', { tenantId })
    const say = (tenantId: string) =>
      db.write([enqueueEvent(uuidv7, { tenantId, type: 'run.failed', atMs: clock.now().getTime(), data: {} })])
    for (let at = 0; at < 50; at++) for (const tenantId of ['default', 'b']) await say(tenantId)
    clock.advance(1000)
    const quick = [await add('https://quick.example'), await add('https://quick.example', { tenantId: 'c' })]
    for (const tenantId of ['default', 'c']) await say(tenantId)
    fixture.webhookDelivery.start()
    for (const id of quick)
      await expect.poll(() => fixture.list(id), { interval: 5 }).toMatchObject([{ outcome: 'delivered' }])
    // Those that were under way before, and those that took their places until this was looked at.
    expect(slow).toBeLessThan(150)
    await fixture.webhookDelivery.stop(0)
    db.close()
  })

  it.each([1, 2, 4, 8])('lets %i tenants hold up no other, however many of their webhooks are slow', async tenants => {
    const held: (() => void)[] = []
    const fixture = await outbox({
      fetch: async url => {
        if (url.host === 'slow.example') await new Promise<void>(resolve => held.push(resolve))
        return new Response(null, { status: 204 })
      },
    })
    const atMs = fixture.clock.now().getTime()
    const say = (tenantId: string) =>
      fixture.db.write([enqueueEvent(uuidv7, { tenantId, type: 'run.failed', atMs, data: {} })])
    for (let of = 0; of < tenants; of++) {
      await fixture.db.execute(`insert into tenants values ('slow-${of}', '"s"', 0)`)
      for (let at = 0; at < 20; at++) await fixture.add('https://slow.example', { tenantId: `slow-${of}` })
      for (let at = 0; at < 10; at++) await say(`slow-${of}`)
    }
    fixture.webhookDelivery.start()
    await expect.poll(() => held.length).toBeGreaterThan(15)
    await fixture.db.execute("insert into tenants values ('other', '\"o\"', 0)")
    const quick = await fixture.add('https://quick.example', { tenantId: 'other' })
    await say('other')
    fixture.webhookDelivery.start()
    await expect.poll(() => fixture.list(quick)).toMatchObject([{ outcome: 'delivered' }])
    expect(held.length).toBeLessThan(64)
    const stopped = fixture.webhookDelivery.stop(1000)
    for (const release of held.splice(0)) release()
    await stopped
    fixture.db.close()
  })

  it('is emptied by two processes without one delivery being sent by both', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-webhooks-'))
    const seen: string[] = []
    const fetch: EgressClient['fetch'] = async (_url, { headers }) => {
      seen.push(headers!['webhook-id']!)
      return new Response(null, { status: 204 })
    }
    const dbs = await Promise.all([1, 2].map(() => openDb(join(folder, 'one.db'))))
    const rooms = [await outbox({ db: dbs[0]!, fetch }), await outbox({ db: dbs[1]!, fetch })]
    await rooms[0]!.add('https://a.example')
    await rooms[0]!.say(100)
    await Promise.all(rooms.map(fixture => fixture.webhookDelivery.once()))
    expect([seen.length, new Set(seen).size]).toEqual([100, 100])
    for (const db of dbs) db.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('sends again what a process died over, once its lease has ended', async () => {
    let calls = 0
    const fixture = await outbox({
      fetch: async (_url, { signal }) => {
        calls++
        if (calls > 1) return new Response(null, { status: 204 })
        return hanging(_url, { signal })
      },
    })
    const id = await fixture.add('https://a.example')
    await fixture.say()
    fixture.webhookDelivery.start()
    while (calls === 0) await new Promise(resolve => setTimeout(resolve, 1))
    // Breaks off what is under way, as a process does that ends.
    await fixture.webhookDelivery.stop(0)
    expect(await fixture.list(id)).toMatchObject([{ outcome: 'pending', attempt: 1 }])
    await fixture.webhookDelivery.once()
    expect(calls).toBe(1)
    fixture.clock.advance(60_000)
    await fixture.webhookDelivery.once()
    expect(await fixture.list(id)).toMatchObject([{ outcome: 'delivered', attempt: 2 }])
    fixture.db.close()
  })

  it('gives up at once what belongs to a webhook that was switched off, and forgets what is old', async () => {
    const { db, add, say, webhookDelivery: made, list, store, clock } = await outbox({ fetch: ok })
    const id = await add('https://a.example')
    await say()
    await store.update(id, { enabled: false }, 2)
    await made.once()
    expect(await list(id)).toMatchObject([{ outcome: 'failed', error: 'the webhook is switched off' }])
    await store.prune(clock.now().getTime() + 1, 10)
    expect(await list(id)).toEqual([])
    db.close()
  })
})

function hanging(_url: URL, { signal }: { signal: AbortSignal }): Promise<Response> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}

function refusedConnection(): Error {
  return new TypeError('fetch failed', {
    cause: Object.assign(new Error('connect 10.1.2.3'), { code: 'ECONNREFUSED' }),
  })
}

function elsewhere(): Response {
  return new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } })
}

it('waits 10 s at first, three times as long each time, and never beyond 6 h', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (attempt, draw) => {
      const delay = retryDelayMs(attempt, () => draw)!
      expect(delay).toBeGreaterThanOrEqual(Math.min(21_600_000, 10_000 * 3 ** (attempt - 1)))
      expect(delay).toBeLessThanOrEqual(Math.min(21_600_000, 12_000 * 3 ** (attempt - 1)))
    }),
  )
  expect(retryDelayMs(9, () => 0)).toBeUndefined()
})
