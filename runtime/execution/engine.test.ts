import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InStatement } from '@libsql/client/web'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { checkJournal } from '../../shared/sign/testing/check-journal.ts'
import type { Db } from '../../shared/sql/db.ts'
import { markUnavailable } from '../../shared/sql/db-fault.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { approvalStore } from '../approvals/store.ts'
import { stepsOf } from '../runs/steps.ts'
import { clearRecords } from '../vault/records.ts'
import { engineLimits } from './engine-deps.ts'
import { StepFailure } from './failure.ts'
import type { ModelRequest } from './models/model.ts'
import { engineFixture, type FixtureOptions, says, script } from './testing/engine-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function fixture(options: FixtureOptions = {}) {
  const made = await engineFixture(options)
  open.push(made)
  await made.engine.start()
  return made
}

/** A question, and beside it a call that is open until it is let go. */
function asksBesideACall(answered: Promise<void>): FixtureOptions {
  return {
    manifest: { tools: ['http_request', 'ask_human'], egress: [{ host: 'far.example' }] },
    ask: script([
      says('', [
        { name: 'ask_human', arguments: { prompt: 'may I?' } },
        { name: 'http_request', arguments: { url: 'https://far.example/slow' } },
      ]),
      says('done'),
    ]),
    async outbound() {
      await answered
      return { status: 200, headers: {}, body: new Uint8Array(), truncated: false }
    },
  }
}

const isClaim = ([first]: readonly InStatement[]): boolean =>
  typeof first === 'object' && first.sql.includes("status = 'running', owner = ?1, epoch")

describe('a run', () => {
  it('whose call needs a store that does not answer is claimed again, and does not fail', async () => {
    let asked = 0
    const answers = script([says('done')])
    const { create, until, runs, engine } = await fixture({
      async ask(...of) {
        if (asked++ > 0) return answers(...of)
        return markUnavailable(() => Promise.reject(new Error('fetch failed: connection refused')))
      },
    })
    const id = await create({ prompt: 'hello' })
    engine.wake()
    expect(await until(id)).toMatchObject({ status: 'succeeded' })
    expect(asked).toBe(2)
    const events = await runs.events(id, 1, 1000)
    expect(events.filter(({ kind }) => kind === 'step_failed')).toEqual([])
  })

  it('goes from its input to its output, with a journal that holds as a chain', async () => {
    const { create, until, runs, engine } = await fixture({ manifest: { tools: ['wait'], limits: { maxTurns: 20 } } })
    const id = await create({ prompt: '/call*3 wait {"seconds":0}' })
    engine.wake()
    const run = await until(id)
    expect(run).toMatchObject({ status: 'succeeded', model: 'demo/echo' })
    const events = await runs.events(id, 1, 1000)
    expect(checkJournal(id, events)).toMatchObject({ ok: true, count: 14 })
    expect(stepsOf(events, 0).map(step => [step.stepId, step.status])).toEqual([
      ['model-1', 'completed'],
      ['timer-1-1', 'completed'],
      ['model-2', 'completed'],
      ['timer-2-1', 'completed'],
      ['model-3', 'completed'],
      ['timer-3-1', 'completed'],
      ['model-4', 'completed'],
    ])
    expect(run.tokensIn).toBe(events.reduce((sum, event) => sum + (event.meta.tokensIn ?? 0), 0))
  })

  it('retries what may work later, under a new key, and says so', async () => {
    const keys: string[] = []
    const { create, until, runs, engine } = await fixture({
      manifest: { retry: { maxAttempts: 3, backoffMs: 1 } },
      ask: async (_request, { key }) => {
        keys.push(key)
        if (keys.length < 3) throw new StepFailure('overloaded', 'try later', { transient: true })
        return says('done')
      },
    })
    const id = await create({ prompt: 'hello' })
    engine.wake()
    expect(await until(id)).toMatchObject({ status: 'succeeded', output: { result: 'done' }, costUsd: 0.000001 })
    expect(keys).toEqual([`${id}:model-1:1`, `${id}:model-1:2`, `${id}:model-1:3`])
    const kinds = (await runs.events(id, 1, 100)).map(event => event.kind)
    expect(kinds).toEqual([
      ...['step_started', 'step_retrying', 'step_started', 'step_retrying', 'step_started', 'step_completed'],
    ])
  })

  it('ends with the reason when a model says no for good', async () => {
    const { create, until, engine } = await fixture({
      ask: async () => {
        throw new StepFailure('bad_request', 'no such model')
      },
    })
    const id = await create({ prompt: 'hello' })
    engine.wake()
    expect(await until(id)).toMatchObject({
      status: 'failed',
      error: { code: 'model_error', message: 'no such model', stepId: 'model-1' },
      output: {},
    })
  })

  it('asks for an answer that fits the schema, as often as the manifest says', async () => {
    const asked: ModelRequest[] = []
    const outputSchema = { type: 'object', required: ['total'], properties: { total: { type: 'number' } } }
    const { create, until, engine } = await fixture({
      manifest: { outputSchema, outputRepairs: 1 },
      ask: script([says('not json'), says('```json\n{"total": 4}\n```')], asked),
    })
    const id = await create({ prompt: 'sum' })
    engine.wake()
    expect(await until(id)).toMatchObject({ status: 'succeeded', output: { total: 4 } })
    const bad = await create({ prompt: 'sum' })
    asked.length = 0
    engine.wake()
    await until(bad)
    expect(asked[1]?.messages.at(-1)).toMatchObject({ role: 'user', text: expect.stringContaining('fits this schema') })
  })

  it('refuses an isolation that nothing here offers, before the first step', async () => {
    const { create, until, runs, engine } = await fixture({ manifest: { isolation: 'firecracker' } })
    const id = await create({ prompt: 'hello' })
    engine.wake()
    expect(await until(id)).toMatchObject({ status: 'failed', error: { code: 'isolation_unavailable' }, tokensIn: 0 })
    expect(await runs.events(id, 1, 10)).toEqual([])
  })

  it('stops at its limit of steps, of turns and of time', async () => {
    const wait = { name: 'wait', arguments: { seconds: 0 } }
    const many = Array.from({ length: 30 }, () => says('', [wait]))
    for (const [limits, code] of [
      [{ maxSteps: 5 }, 'limit_exceeded'],
      [{ maxTurns: 3 }, 'limit_exceeded'],
    ] as const) {
      const { create, until, engine } = await fixture({ manifest: { tools: ['wait'], limits }, ask: script(many) })
      const id = await create({ prompt: 'go' })
      engine.wake()
      expect(await until(id)).toMatchObject({ status: 'failed', error: { code } })
    }
    const { create, until, engine } = await fixture({
      manifest: { limits: { timeoutSeconds: 1 } },
      ask: (_request, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
    })
    const id = await create({ prompt: 'go' })
    engine.wake()
    expect(await until(id)).toMatchObject({ status: 'failed', error: { code: 'timeout' } })
  })
})

it('takes up a run that processes handed over in order, however often that was', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'handed-over-'))
  try {
    const url = join(folder, 'x.db')
    let id: string | undefined
    for (let life = 1; life <= 6; life++) {
      let asked = 0
      const made = await engineFixture({
        url,
        ask: (_request, { signal }) =>
          new Promise((resolve, reject) => {
            asked++
            if (life === 6) resolve(says('done'))
            signal.addEventListener('abort', () => reject(signal.reason), { once: true })
          }),
      })
      id ??= await made.create({ prompt: 'go' })
      await made.engine.start()
      await expect.poll(() => asked).toBe(1)
      if (life === 6) expect(await made.until(id)).toMatchObject({ status: 'succeeded' })
      await made.engine.close(0)
      await made.close()
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})

describe('a run that waits', () => {
  it('holds no worker, and goes on once when it is approved', async () => {
    const asked: ModelRequest[] = []
    const { create, until, engine, db, runs } = await fixture({
      manifest: { tools: ['wait'], approvals: { tools: ['wait'] } },
      ask: script([says('', [{ name: 'wait', arguments: { seconds: 0 } }]), says('done')], asked),
    })
    const id = await create({ prompt: 'go' })
    engine.wake()
    expect(await until(id, ['waiting'])).toMatchObject({ status: 'waiting' })
    expect(engine.active).toBe(0)
    const { rows } = await db.execute({ sql: 'select * from approvals where run_id = ?', args: [id] })
    expect(rows[0]).toMatchObject({ status: 'pending', reason: 'approval_required', step_id: 'approval-1-1' })
    await db.write([
      "update approvals set status = 'approved', decided_by = 'me', decided_ms = 1",
      { sql: 'update runs set due_ms = 0 where id = ?', args: [id] },
    ])
    engine.wake()
    expect(await until(id)).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(asked).toHaveLength(2)
    expect(checkJournal(id, await runs.events(id, 1, 100))).toMatchObject({ ok: true })
  })

  it('goes on at once when it was approved while a call beside the question was still open', async () => {
    const answered = Promise.withResolvers<void>()
    const { create, until, engine, db, runs } = await fixture(asksBesideACall(answered.promise))
    const id = await create({ prompt: 'go' })
    engine.wake()
    const store = approvalStore(db, clearRecords)
    await expect.poll(async () => (await store.ofRun(id)).length).toBe(1)
    const [asked] = await store.ofRun(id)
    const decision = { output: 'yes' }
    expect(await store.decide(asked!, { approve: true, by: 'me', atMs: Date.now(), decision })).toBe(true)
    answered.resolve()
    expect(await until(id)).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(checkJournal(id, await runs.events(id, 1, 100))).toMatchObject({ ok: true })
  })

  it('goes on soon when the store refuses what comes after the commit that let go of it', async () => {
    const answered = Promise.withResolvers<void>()
    let refusals = 0
    const { create, until, engine, db } = await fixture({
      ...asksBesideACall(answered.promise),
      wrap: db => ({
        ...db,
        async write(statements) {
          if (refusals === 1 && isClaim(statements)) {
            refusals++
            throw new Error('the disk is full')
          }
          const results = await db.write(statements)
          const { rows } = await db.execute("select 1 from runs where status = 'waiting' and owner is null")
          if (rows.length > 0 && refusals === 0) refusals = 1
          return results
        },
      }),
    })
    const id = await create({ prompt: 'go' })
    engine.wake()
    const store = approvalStore(db, clearRecords)
    await expect.poll(async () => (await store.ofRun(id)).length).toBe(1)
    const [asked] = await store.ofRun(id)
    await store.decide(asked!, { approve: true, by: 'me', atMs: Date.now(), decision: { output: 'yes' } })
    answered.resolve()
    expect(await until(id)).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(refusals).toBe(2)
  })

  it('takes a signal once, whether it comes before or after', async () => {
    const { create, until, engine, runs } = await fixture({
      manifest: { tools: ['wait_signal'] },
      ask: script([
        says('', [{ name: 'wait_signal', arguments: { name: 'go' } }]),
        says('', [{ name: 'wait_signal', arguments: { name: 'go' } }]),
        says('done'),
      ]),
    })
    const id = await create({ prompt: 'go' })
    const send = (value: string, n: number) =>
      runs.signal(id, { id: `s${n}`, name: 'go', value: JSON.stringify(value), atMs: n })
    expect(await send('first', 1)).toBe(true)
    engine.wake()
    await until(id, ['running'])
    await send('second', 2)
    engine.wake()
    expect(await until(id)).toMatchObject({ status: 'succeeded' })
    const outputs = (await runs.events(id, 1, 100)).filter(event => event.stepId.startsWith('signal-'))
    expect(outputs.flatMap(({ payload }) => (payload.output ? [payload.output] : []))).toEqual([
      { signal: 'go', value: 'first' },
      { signal: 'go', value: 'second' },
    ])
    expect(await send('late', 3)).toBe(false)
  })
})

describe('an end from outside', () => {
  it('aborts the call, closes its step and cannot be overwritten', async () => {
    let aborted = false
    const { create, until, engine, runs } = await fixture({
      ask: (_request, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true
            reject(signal.reason)
          })
        }),
    })
    const id = await create({ prompt: 'go' })
    engine.wake()
    for await (const event of eventsOf(runs, id)) if (event.kind === 'step_started') break
    expect(await engine.end(id, { code: 'cancelled', reason: 'changed my mind' })).toBe(true)
    expect(await until(id)).toMatchObject({ status: 'cancelled', cancelReason: 'changed my mind', output: {} })
    expect(aborted).toBe(true)
    expect(await engine.end(id, { code: 'cancelled' })).toBe(false)
    const events = await runs.events(id, 1, 10)
    expect(events.map(event => [event.kind, event.payload.code])).toEqual([
      ['step_started', undefined],
      ['step_failed', 'cancelled'],
    ])
    expect(checkJournal(id, events)).toMatchObject({ ok: true })
  })
})

describe('a run that is ended by several at once', () => {
  it('is ended by one of them, and the others are told that it was', async () => {
    const { create, until, engine } = await fixture({ manifest: { tools: ['wait_signal'] } })
    const id = await create({ prompt: '/call wait_signal {"name":"go"}' })
    engine.wake()
    await until(id, ['running'])
    const told = await Promise.all([1, 2, 3].map(() => engine.end(id, { code: 'cancelled' })))
    expect(told.sort()).toEqual([false, false, true])
    expect(await until(id)).toMatchObject({ status: 'cancelled' })
  })

  it('also where they are two processes on one store', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-end-'))
    open.push({ close: () => rm(folder, { recursive: true }) })
    const url = join(folder, 'runtime.db')
    const [one, other] = [await fixture({ url }), await fixture({ url })]
    for (let n = 0; n < 10; n++) {
      const id = await one.create({ prompt: 'go' })
      const told = await Promise.all([one, other].map(({ engine }) => engine.end(id, { code: 'cancelled' })))
      expect(told.sort()).toEqual([false, true])
    }
  })

  it('asks nobody any more', async () => {
    const { create, until, engine, db } = await fixture({ manifest: { tools: ['ask_human'] } })
    const id = await create({ prompt: '/call ask_human {"prompt":"how many?"}' })
    engine.wake()
    await until(id, ['waiting'])
    await engine.end(id, { code: 'cancelled' })
    const { rows } = await db.execute({ sql: 'select status from approvals where run_id = ?', args: [id] })
    expect(rows.map(row => row.status)).toEqual(['cancelled'])
  })
})

async function* eventsOf(runs: Awaited<ReturnType<typeof engineFixture>>['runs'], id: string) {
  for (let next = 1; ; ) {
    for (const event of await runs.events(id, next, 100)) {
      yield event
      next = event.seq + 1
    }
    await new Promise(resolve => setTimeout(resolve, 1))
  }
}

/** A store that makes the first claims and breaks off its answers to them. */
function lostClaims(times: number) {
  let left = times
  const wrap = (db: Db): Db => ({
    ...db,
    async write(statements) {
      const answer = await db.write(statements)
      if (isClaim(statements) && answer[0]!.rows.length > 0 && left-- > 0) throw new TypeError('fetch failed')
      return answer
    },
  })
  return { wrap, left: () => left }
}

it('takes a run up again whose claim was made although its answer was lost', async () => {
  const lost = lostClaims(1)
  const { create, until, engine } = await fixture({
    wrap: lost.wrap,
  })
  const id = await create({ prompt: 'hello' })
  engine.wake()
  // Long before the lease of a minute ends.
  expect(await until(id)).toMatchObject({ status: 'succeeded' })
  expect(lost.left()).toBeLessThan(1)
})

it('sets no run aside because the store breaks off its answers: no process ended with it', async () => {
  const lost = lostClaims(6)
  const { create, until, engine } = await fixture({
    limits: { ...engineLimits, recoveryMs: 50 },
    wrap: lost.wrap,
  })
  const id = await create({ prompt: 'hello' })
  await engine.start()
  await expect.poll(lost.left, { timeout: 15_000 }).toBeLessThan(1)
  expect(await until(id)).toMatchObject({ status: 'succeeded' })
}, 30_000)

/** A store on a server that is not reached for a while, or that makes what it is given and breaks off its answer. */
function storeAway(wrapped: { answersLost?: boolean } = {}) {
  let away = false
  const gone = () => markUnavailable(() => Promise.reject(new TypeError('fetch failed')))
  const wrap = (db: Db): Db => ({
    ...db,
    execute: one => (away ? gone() : db.execute(one)),
    read: many => (away ? gone() : db.read(many)),
    async write(statements) {
      if (!away) return db.write(statements)
      if (wrapped.answersLost) await db.write(statements)
      return gone()
    },
  })
  return { wrap, put: (is: boolean) => (away = is) }
}

describe('a store that is away while a model answers', () => {
  const leaseMs = 900
  it.each([
    ['for a moment', 300, {}],
    ['and made what it did not answer', 300, { answersLost: true }],
    ['for longer than the lease', 1500, {}],
    ['for longer than the lease, and made what it did not answer', 1500, { answersLost: true }],
  ])('gets the answer when it is back, and nothing is asked again: %s', async (_name, awayMs, how) => {
    const store = storeAway(how)
    const { promise: answer, resolve } = Promise.withResolvers<void>()
    const asked = vi.fn(async () => {
      await answer
      return says('paid for')
    })
    const { create, until, engine, runs } = await fixture({
      limits: { ...engineLimits, leaseMs },
      wrap: store.wrap,
      ask: asked,
    })
    const id = await create({ prompt: 'hello' })
    engine.wake()
    await expect.poll(() => asked.mock.calls.length).toBe(1)
    store.put(true)
    resolve()
    await new Promise(go => setTimeout(go, awayMs))
    store.put(false)
    expect(await until(id)).toMatchObject({ status: 'succeeded' })
    expect(asked).toHaveBeenCalledOnce()
    const events = await runs.events(id, 1, 1000)
    expect(checkJournal(id, events)).toMatchObject({ ok: true })
    expect(events.map(({ kind }) => kind).filter(kind => kind === 'step_completed')).toHaveLength(1)
    expect(JSON.stringify(events)).not.toContain('uncertain')
    expect((await runs.get(id))?.tokensOut).toBe(says('').spent.tokensOut)
  })

  it('leaves no call beside the one that needs it, which is made once it is back', async () => {
    const sent: string[] = []
    let isAway = true
    const { create, until, engine, runs } = await fixture({
      manifest: { tools: ['http_request'], egress: [{ host: 'far.example' }] },
      ask: script([
        says('', [
          { name: 'http_request', arguments: { url: 'https://far.example/slow', method: 'POST', body: 'x' } },
          { name: 'http_request', arguments: { url: 'https://far.example/other', method: 'POST', body: 'y' } },
        ]),
        says('done'),
      ]),
      async outbound({ url }) {
        if (url.pathname === '/other' && isAway)
          return markUnavailable(() => Promise.reject(new TypeError('fetch failed')))
        sent.push(url.pathname)
        if (url.pathname === '/slow') await new Promise(go => setTimeout(go, 1800))
        return { status: 200, headers: {}, body: new Uint8Array(), truncated: false }
      },
    })
    const id = await create({ prompt: 'go' })
    engine.wake()
    await expect.poll(() => sent).toEqual(['/slow'])
    await new Promise(go => setTimeout(go, 400))
    isAway = false
    expect(await until(id)).toMatchObject({ status: 'succeeded' })
    expect(sent).toEqual(['/slow', '/other'])
    expect(JSON.stringify(await runs.events(id, 1, 1000))).not.toContain('uncertain')
  })

  it('keeps no service from stopping', async () => {
    const store = storeAway()
    const { promise: answer, resolve } = Promise.withResolvers<void>()
    const asked = vi.fn(async () => {
      await answer
      return says('paid for')
    })
    const { create, engine } = await fixture({ wrap: store.wrap, ask: asked })
    await create({ prompt: 'hello' })
    engine.wake()
    await expect.poll(() => asked.mock.calls.length).toBe(1)
    store.put(true)
    resolve()
    const began = performance.now()
    await engine.close(200)
    expect(performance.now() - began).toBeLessThan(5000)
    store.put(false)
  })
})

it('takes up a run that was made while the clock was ahead, once that is set back', async () => {
  const clock = manualClock(new Date('2026-01-02T03:04:05Z'))
  for (const running of [true, false]) {
    const made = await engineFixture({ clock, limits: { ...engineLimits, recoveryMs: 50 } })
    open.push(made)
    const { create, until, engine } = made
    if (running) await engine.start()
    clock.set(365 * 86_400_000)
    const id = await create({ prompt: 'hello' })
    clock.set(-365 * 86_400_000)
    if (!running) await engine.start()
    expect(await until(id)).toMatchObject({ status: 'succeeded' })
  }
})

it.each(['wait {"seconds":600}', 'wait_signal {"name":"go","timeoutSeconds":600}'])(
  'waits no longer than it was to where the clock was ahead when it began: %s',
  async call => {
    const clock = manualClock(new Date('2026-01-02T03:04:05Z'))
    const limits = { ...engineLimits, recoveryMs: 20 }
    const made = await engineFixture({ clock, limits, manifest: { tools: ['wait', 'wait_signal'] } })
    open.push(made)
    const { create, until, engine, db } = made
    await engine.start()
    clock.set(365 * 86_400_000)
    const ids = [
      await create({ prompt: `/call ${call}` }),
      await create({ prompt: '/call wait {"until":"2028-01-01"}' }),
    ]
    engine.wake()
    const parked = async () => (await db.execute('select 1 from runs where parked is not null')).rows.length
    await vi.waitFor(async () => expect(await parked()).toBe(2), 5000)
    clock.set(-365 * 86_400_000)
    clock.advance(590_000)
    await new Promise(resolve => setTimeout(resolve, 100))
    expect(await parked()).toBe(2)
    clock.advance(600_000)
    expect(await until(ids[0]!)).toMatchObject({ status: 'succeeded' })
    expect(await parked()).toBe(1)
  },
)
