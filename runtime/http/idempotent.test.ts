import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openDb } from '../../shared/host/open-libsql.ts'
import { mount } from '../../shared/http/operation.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { created } from '../../shared/wire/answers.ts'
import { eventually } from '../../tests/eventually.ts'
import { answerErrors } from '../errors.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { clearRecords } from '../vault/records.ts'
import type { RuntimeHttpEnv } from './http-env.ts'
import { idempotencyStore } from './idempotency-store.ts'
import { idempotency } from './idempotent.ts'
import { keyedOperation } from './operation.ts'

let folder: string
let db: Db
const clock = manualClock(new Date('2026-01-02T03:04:05.678Z'))
let ids = 0
const newId = () => `id-${++ids}`

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-idempotency-'))
  await open()
})
afterEach(async () => {
  db.close()
  await rm(folder, { recursive: true, force: true })
})

async function open() {
  db = await openDb(join(folder, 'store.db'))
  await migrate(db, 'runtime', runtimeSteps)
  await db.execute('create table if not exists things (id text primary key, body text not null) strict')
}

interface Fate {
  /** The work is committed and bound, and then the process is gone: its promise never settles. */
  diesAfterWork?: boolean
  /** Gone before the work. */
  diesBeforeWork?: boolean
  status?: 201 | 400
  /** Settles when the handler may go on. */
  until?: Promise<void>
}

const thing = {
  id: 'createThing',
  method: 'POST',
  tag: 'Things',
  summary: 'Create a thing',
  auth: 'bearer',
  body: z.record(z.string(), z.unknown()),
  responses: created(z.object({ id: z.string(), rawKey: z.string(), body: z.unknown() })),
  idempotent: true,
  errors: [400],
} as const

/** A process with one creating operation. A new one over the same store is a restart. */
function processOf(fate: Fate = {}) {
  const idempotent = idempotency({ store: idempotencyStore(db, clearRecords), now: clock.now, newId, log: silentLog() })
  const never = new Promise<never>(() => undefined)
  let calls = 0
  const app = new Hono<RuntimeHttpEnv>().use(async (c, next) => {
    c.set('principal', { tenantId: c.req.header('tenant') ?? 'default', keyId: 'k', scopes: [] })
    await next()
  })
  const create = (path: '/v1/things' | '/v1/things/{id}') =>
    keyedOperation(
      { ...thing, path },
      async ({ body, idempotency, context }) => {
        calls++
        if (fate.diesBeforeWork) await never
        await fate.until
        if (fate.status === 400) return context.json({ error: 'no' }, 400)
        const id = newId()
        await db.write([
          { sql: 'insert into things (id, body) values (?, ?)', args: [id, JSON.stringify(body)] },
          ...idempotency.bind(id),
        ])
        if (fate.diesAfterWork) await never
        return { id, rawKey: 'wb_live_secret', body }
      },
      {
        oneTime: ['rawKey'],
        bodyKey: ({ idempotencyKey: key }) => (typeof key === 'string' ? key : undefined),
        async again(_, id) {
          const { rows } = await db.execute({ sql: 'select body from things where id = ?', args: [id] })
          return { id, rawKey: '***', body: readJson(String(rows[0]?.body)) }
        },
      },
    )
  mount(app, [create('/v1/things'), create('/v1/things/{id}')], { maxBodyBytes: 10_000, idempotent })
  app.onError(answerErrors(silentLog()))
  return {
    calls: () => calls,
    async post(body: unknown, headers: Record<string, string> = { 'idempotency-key': 'k1' }, path = '/v1/things') {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const all = { 'content-type': 'application/json', ...headers }
      const answer = await app.request(path, { method: 'POST', body: text, headers: all })
      const read = (await answer.json()) as { id?: string; rawKey?: string; code?: string; error?: string }
      return { status: answer.status, replayed: answer.headers.get('idempotency-replayed'), body: read }
    },
  }
}

async function things(): Promise<number> {
  return Number((await db.execute('select count(*) as n from things')).rows[0]?.n)
}

/** Waits until the call that is under way has got so far. */
function until(condition: () => Promise<boolean>) {
  return eventually(async () => expect(await condition()).toBe(true), { interval: 1, timeout: 5000 })
}

describe('an equal call with the same key', () => {
  it('gets the first answer again, marked, and without its one-time secret', async () => {
    const { post, calls } = processOf()
    const first = await post({ a: 1, b: [2] })
    expect(first).toMatchObject({ status: 201, replayed: null, body: { rawKey: 'wb_live_secret' } })
    const second = await post('{ "b": [2.0], "a": 1 }')
    expect(second).toMatchObject({ status: 201, replayed: 'true', body: { id: first.body.id, rawKey: '***' } })
    expect([calls(), await things()]).toEqual([1, 1])
    const stored = JSON.stringify((await db.execute('select * from idempotency')).rows)
    expect(stored).not.toContain('wb_live_secret')
  })

  it('gets it after a restart, for a day and no longer', async () => {
    const first = await processOf().post({})
    db.close()
    await open()
    clock.advance(24 * 3_600_000 - 1)
    expect((await processOf().post({})).body.id).toBe(first.body.id)
    clock.advance(1)
    const later = await processOf().post({})
    expect(later).toMatchObject({ status: 201, replayed: null })
    expect(later.body.id).not.toBe(first.body.id)
  })

  it('does the work once when fifty arrive together', async () => {
    const { post, calls } = processOf()
    const all = await Promise.all(Array.from({ length: 50 }, () => post({})))
    expect([calls(), await things()]).toEqual([1, 1])
    expect(all.filter(({ status, replayed }) => status === 201 && replayed === null)).toHaveLength(1)
    for (const { status, body } of all) if (status !== 201) expect(body.code).toBe('idempotency_in_progress')
  })

  it('does the work once when two processes get it together', async () => {
    const [one, two] = [processOf(), processOf()]
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? one : two).post({})))
    expect(one.calls() + two.calls()).toBe(1)
    expect(all.filter(({ status, replayed }) => status === 201 && replayed === null)).toHaveLength(1)
  })

  it('is told that the first is not done', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const slow = processOf({ until: promise })
    const first = slow.post({})
    await until(async () => slow.calls() === 1)
    expect(await slow.post({})).toMatchObject({ status: 409, body: { code: 'idempotency_in_progress' } })
    expect(await slow.post({ other: true })).toMatchObject({ status: 409, body: { code: 'idempotency_mismatch' } })
    resolve()
    expect((await first).status).toBe(201)
    expect(await slow.post({})).toMatchObject({ status: 201, replayed: 'true' })
  })
})

describe('a key', () => {
  it('with another body is refused', async () => {
    const { post } = processOf()
    await post({ a: 1 })
    expect(await post({ a: 2 })).toMatchObject({ status: 409, body: { code: 'idempotency_mismatch' } })
  })

  it('belongs to one tenant and one path', async () => {
    const { post, calls } = processOf()
    await post({})
    await post({}, { 'idempotency-key': 'k1', tenant: 'other' })
    await post({}, { 'idempotency-key': 'k1' }, '/v1/things/1')
    await post({}, { 'idempotency-key': 'k1' }, `/v1/things/${'x'.repeat(300)}`)
    await post({}, { 'idempotency-key': 'k2' })
    await post({}, {})
    expect(calls()).toBe(6)
  })

  it('may come in the body, and the header wins', async () => {
    const { post, calls } = processOf()
    const body = { idempotencyKey: 'in-body' }
    await post(body, {})
    expect((await post(body, { 'idempotency-key': 'in-body' })).replayed).toBe('true')
    expect((await post(body, { 'idempotency-key': 'other' })).replayed).toBeNull()
    expect(calls()).toBe(2)
  })

  it('is free again after a refusal', async () => {
    expect((await processOf({ status: 400 }).post({})).status).toBe(400)
    expect(await processOf().post({ other: true })).toMatchObject({ status: 201, replayed: null })
  })

  it('of another form is refused, and so is a body without a canonical form', async () => {
    const { post, calls } = processOf()
    for (const key of ['x'.repeat(256), 'ä', '']) {
      expect((await post({}, { 'idempotency-key': key })).status, key).toBe(400)
    }
    for (const text of ['"\\ud800"', '1e400']) {
      expect(await post(`{"a":[${text}]}`)).toMatchObject({
        status: 400,
        body: { code: 'validation_failed', error: expect.stringMatching(/^a\.0: expected text .* numbers up to/) },
      })
    }
    expect(calls()).toBe(0)
  })
})

describe('a process that dies', () => {
  it('after the work and before its answer is stored has done it: a repeat answers from the object', async () => {
    void processOf({ diesAfterWork: true }).post({ a: 1 })
    await until(async () => (await things()) === 1)
    for (const wait of [0, 200_000, 3_600_000]) {
      clock.advance(wait)
      const after = processOf()
      expect(await after.post({ a: 1 })).toMatchObject({ status: 201, replayed: 'true', body: { rawKey: '***' } })
      expect(await after.post({ a: 2 })).toMatchObject({ status: 409, body: { code: 'idempotency_mismatch' } })
      expect([after.calls(), await things()]).toEqual([0, 1])
    }
  })

  it('before the work holds the key until the time for an answer is over', async () => {
    const dying = processOf({ diesBeforeWork: true })
    void dying.post({})
    await until(async () => dying.calls() === 1)
    clock.advance(14_999)
    expect(await processOf().post({})).toMatchObject({ status: 409, body: { code: 'idempotency_in_progress' } })
    clock.advance(1)
    expect(await processOf().post({})).toMatchObject({ status: 201, replayed: null })
    expect(await things()).toBe(1)
  })

  it('only seemingly, and wakes up after a repeat took its place, writes nothing and gives the answer of the repeat', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const asleep = processOf({ until: promise })
    const first = asleep.post({})
    await until(async () => asleep.calls() === 1)
    clock.advance(15_000)
    const second = await processOf().post({})
    resolve()
    expect(await first).toMatchObject({ status: 201, replayed: 'true', body: { id: second.body.id } })
    expect(await things()).toBe(1)
    expect((await processOf().post({})).body.id).toBe(second.body.id)
  })

  it('at any point does the work at most once in the time of a key', async () => {
    const fates: Fate[] = [{}, { diesAfterWork: true }, { diesBeforeWork: true }, { status: 400 }]
    const plan = fc.array(fc.tuple(fc.constantFrom(...fates), fc.constantFrom(0, 60_000, 15_000)), { maxLength: 6 })
    let round = 0
    await fc.assert(
      fc.asyncProperty(plan, async tries => {
        const headers = { 'idempotency-key': `round-${++round}` }
        const before = await things()
        for (const [fate, wait] of tries) {
          const one = processOf(fate)
          const dead = fate.diesAfterWork || fate.diesBeforeWork
          const answer = one.post({ round }, headers)
          if (dead) await Promise.race([answer, until(async () => one.calls() === 1)])
          else await answer
          clock.advance(wait)
        }
        await processOf().post({ round }, headers)
        clock.advance(15_000)
        expect((await processOf().post({ round }, headers)).status).toBe(201)
        expect((await things()) - before).toBe(1)
      }),
      { numRuns: 25 },
    )
  })
})
