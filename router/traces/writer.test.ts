import type { InStatement } from '@libsql/client/web'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { createLog, parseLogFilter } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { type Sqld, sqldAvailable, startSqld } from '../../tests/backends/sqld.ts'
import { storeFolder, testSigner, testWriter } from '../host/testing/store-folder.ts'
import { routerSteps } from '../schema/steps.ts'
import { publishedKeys, publishKey, trustedKeys } from './keys.ts'
import { writerLease } from './lease.ts'
import type { Spill } from './spill.ts'
import { storedCheckpoints, storedFeedback, storedRecords } from './stored-records.ts'
import { sampleTrace } from './testing/records.ts'
import { verifyRecords } from './verify.ts'

let folder: Awaited<ReturnType<typeof storeFolder>>
let names = 0
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())
async function fresh(): Promise<Db> {
  const db = await folder.open(`${names++}.db`)
  await publishKey(db, testSigner, new Date())
  return db
}

async function verified(db: Db) {
  return verifyRecords({
    records: storedRecords(db),
    feedback: storedFeedback(db),
    checkpoints: await storedCheckpoints(db),
    keys: trustedKeys(await publishedKeys(db)),
  })
}

const stored = async (db: Db) =>
  (await db.execute('select trace_id from traces order by tenant_id, seq')).rows.map(row => row.trace_id)

/** A spill in memory, whose disk may fail. */
function memorySpill() {
  let lines: string[] = []
  const state = { fails: false, synced: 0 }
  const spill: Spill = {
    async append(line) {
      await null
      if (state.fails) throw new Error('No space left on the disk.')
      lines.push(line)
      state.synced++
    },
    async parts() {
      const text = lines.join('\n')
      lines = []
      return text === '' ? [] : [{ name: 'part', read: async () => text, remove: async () => undefined }]
    },
    bytes: () => lines.join('\n').length,
  }
  return { spill, state, lines: () => lines }
}

/** The same database, where the next writes of traces end as `how` says. */
function failing(db: Db, how: { before?: number; after?: number }): Db {
  async function faulty<T>(write: () => Promise<T>): Promise<T> {
    if ((how.before ?? 0) > 0) {
      how.before = (how.before ?? 0) - 1
      throw Object.assign(new Error('the disk is gone'), { code: 'SQLITE_IOERR' })
    }
    const result = await write()
    if ((how.after ?? 0) > 0) {
      how.after = (how.after ?? 0) - 1
      throw Object.assign(new Error('the connection was lost'), { code: 'SQLITE_IOERR' })
    }
    return result
  }
  const adds = (statement: InStatement) =>
    (typeof statement === 'string' ? statement : statement.sql).includes('insert into traces')
  return {
    ...db,
    execute: statement => (adds(statement) ? faulty(() => db.execute(statement)) : db.execute(statement)),
    write: statements => (statements.some(adds) ? faulty(() => db.write(statements)) : db.write(statements)),
  }
}

function suite(name: string, open: () => Promise<Db>) {
  describe(`the trace writer on ${name}`, () => {
    it('seals one chain for each tenant, in the order of arrival, and signs the ends', async () => {
      const db = await open()
      const writer = testWriter(db, { limits: { batch: 7, checkpoint_records: 10 } })
      const records = Array.from({ length: 60 }, (_, index) => sampleTrace({ tenant: index % 3 === 0 ? 'b' : 'a' }))
      for (const record of records) expect(writer.enqueue(record)).toBe('queued')
      await writer.close()
      expect(await stored(db)).toEqual([
        ...records.filter(({ tenant_id }) => tenant_id === 'a').map(({ trace_id }) => trace_id),
        ...records.filter(({ tenant_id }) => tenant_id === 'b').map(({ trace_id }) => trace_id),
      ])
      expect(await verified(db)).toEqual({
        valid: true,
        records: 60,
        tenants: [
          {
            tenant_id: 'a',
            records: 40,
            broken_at: null,
            reason: null,
            last_checkpoint: 39,
            unanchored_tail: 0,
            unanchored_feedback: 0,
          },
          {
            tenant_id: 'b',
            records: 20,
            broken_at: null,
            reason: null,
            last_checkpoint: 19,
            unanchored_tail: 0,
            unanchored_feedback: 0,
          },
        ],
      })
      expect(writer.depth()).toBe(0)
    })

    it('goes on where an earlier process stopped', async () => {
      const db = await open()
      for (const seconds of [1, 2, 3]) {
        const writer = testWriter(db)
        writer.start()
        for (let count = 0; count < 5; count++) writer.enqueue(sampleTrace({ at: seconds * 1000 }))
        await writer.close()
      }
      const report = await verified(db)
      expect(report).toMatchObject({ valid: true, records: 15, tenants: [{ last_checkpoint: 14 }] })
    })

    it('keeps one chain when two processes write at once, and both get their turn', async () => {
      const db = await open()
      const writers = [1, 2].map(() => testWriter(db, { limits: { lease_ms: 300 } }))
      const all: string[] = []
      for (let round = 0; round < 20; round++) {
        for (const writer of writers) {
          const record = sampleTrace()
          all.push(record.trace_id)
          expect(writer.enqueue(record)).toBe('queued')
        }
      }
      await Promise.all(writers.map(writer => writer.flush()))
      await Promise.all(writers.map(writer => writer.close()))
      expect((await stored(db)).sort()).toEqual(all.sort())
      expect(await verified(db)).toMatchObject({ valid: true, records: 40 })
    })

    it('writes each record once when an answer of the store is lost', async () => {
      const db = await open()
      const writer = testWriter(failing(db, { before: 1, after: 2 }), { limits: { batch: 5 } })
      const records = Array.from({ length: 12 }, () => sampleTrace())
      for (const record of records) writer.enqueue(record)
      await writer.close()
      expect(await stored(db)).toEqual(records.map(({ trace_id }) => trace_id))
      expect(await verified(db)).toMatchObject({ valid: true, records: 12 })
    })
  })
}

suite('a file', fresh)

if (await sqldAvailable()) {
  let sqld: Sqld
  const open = async () => {
    sqld ??= await startSqld()
    const db = await openDb(sqld.primaryUrl)
    await migrate(db, 'router', routerSteps)
    for (const table of ['traces', 'checkpoints', 'feedback', 'writer_lease', 'signing_keys'])
      await db.execute(`delete from ${table}`)
    await publishKey(db, testSigner, new Date())
    return db
  }
  afterAll(() => sqld?.stop())
  suite('a libSQL server', open)
}

describe('best effort', () => {
  it('drops what does not fit into the queue, counts it and says it once a minute', async () => {
    const db = await fresh()
    const clock = manualClock()
    const lines: string[] = []
    const metrics = createMetrics()
    const log = createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => lines.push(line) })
    const writer = testWriter(db, { clock, log, metrics, limits: { queue: 3, flush_ms: 60_000 } })
    const offer = (count: number) => Array.from({ length: count }, () => writer.enqueue(sampleTrace()))
    expect(offer(5)).toEqual(['queued', 'queued', 'queued', 'dropped', 'dropped'])
    expect(lines).toHaveLength(1)
    clock.advance(61_000)
    offer(1)
    expect(lines.map(line => JSON.parse(line).dropped)).toEqual([1, 2])
    expect(writer.depth()).toBe(3)
    await writer.close()
    expect(await stored(db)).toHaveLength(3)
    expect(writer.enqueue(sampleTrace())).toBe('dropped')
    expect(metrics.text()).toContain('router_traces_dropped_total 4')
    expect(metrics.text()).toContain('router_traces_written_total 3')
  })

  it('gives up at the end of close when the store never answers', async () => {
    const db = await fresh()
    const metrics = createMetrics()
    const writer = testWriter(failing(db, { before: 1e9 }), { metrics, limits: { close_ms: 0 } })
    writer.enqueue(sampleTrace())
    await writer.close()
    expect(metrics.text()).toContain('router_traces_dropped_total 1')
  })

  it('drops a record that cannot be sealed and keeps its neighbours', async () => {
    const db = await fresh()
    const writer = testWriter(db)
    const good = [sampleTrace(), sampleTrace()]
    writer.enqueue(good[0]!)
    writer.enqueue(sampleTrace({ final: { wall_ms: Number.NaN } }))
    writer.enqueue(good[1]!)
    await writer.close()
    expect(await stored(db)).toEqual(good.map(({ trace_id }) => trace_id))
    expect(await verified(db)).toMatchObject({ valid: true, records: 2 })
  })

  it('makes any text safe for the store and still verifies', async () => {
    const db = await fresh()
    const writer = testWriter(db)
    const nasty = '\ud83d half \0 nul é€😀 " \\ \n \u2028' + 'x'.repeat(600)
    writer.enqueue(
      sampleTrace({ session: nasty, model: nasty, final: { response_id: nasty, client_request_id: '\udc00' } }),
    )
    await writer.close()
    expect(await verified(db)).toMatchObject({ valid: true, records: 1 })
  })
})

describe('durable', () => {
  it('tells that a record is safe only when it is in the store', async () => {
    const db = await fresh()
    const writer = testWriter(db, { mode: 'durable', spill: memorySpill().spill })
    const record = sampleTrace()
    writer.enqueue(record)
    await writer.recorded(record.trace_id)
    expect(await stored(db)).toEqual([record.trace_id])
    await writer.close()
  })

  it('spills when the queue is full or the store is down, and brings it in later, in the order of ts', async () => {
    const db = await fresh()
    const how = { before: 3 }
    const memory = memorySpill()
    const metrics = createMetrics()
    const writer = testWriter(failing(db, how), { mode: 'durable', spill: memory.spill, metrics, limits: { queue: 2 } })
    const records = [4, 3, 2, 1].map(second => sampleTrace({ at: second * 1000 }))
    expect(records.map(record => writer.enqueue(record))).toEqual(['queued', 'queued', 'spilled', 'spilled'])
    await Promise.all(records.map(({ trace_id }) => writer.recorded(trace_id)))
    expect(memory.state.synced).toBe(4)
    expect(await stored(db)).toEqual([])
    how.before = 0
    await expect.poll(() => stored(db), { interval: 20, timeout: 20_000 }).toHaveLength(4)
    await writer.close()
    expect(await stored(db)).toEqual(records.map(({ trace_id }) => trace_id).reverse())
    expect(metrics.text()).toContain('router_traces_spilled_total 4')
    expect(await verified(db)).toMatchObject({ valid: true, records: 4 })
  })

  it('says so when neither the store nor the disk takes a record', async () => {
    const db = await fresh()
    const memory = memorySpill()
    memory.state.fails = true
    const how = { before: 1e9 }
    const writer = testWriter(failing(db, how), { mode: 'durable', spill: memory.spill })
    const record = sampleTrace()
    writer.enqueue(record)
    await expect(writer.recorded(record.trace_id)).rejects.toThrow('No space left')
    expect(writer.status()).toMatchObject({
      writer: expect.stringContaining('disk of the store fails'),
      spill: 'No space left on the disk.',
    })
    // A balancer sends no caller to a router that is not ready: the router finds out by itself that there is room again.
    how.before = 0
    await expect.poll(() => writer.status(), { timeout: 20_000 }).toMatchObject({ writer: 'ok', spill: 'ok' })
    await writer.close()
  })

  it('over a server, which has no file to spill into, says so of what the queue or the end leaves no room for', async () => {
    const db = await fresh()
    const writer = testWriter(failing(db, { before: 1e9 }), { mode: 'durable', limits: { queue: 1, close_ms: 50 } })
    const [waiting, beyond, late] = [sampleTrace(), sampleTrace(), sampleTrace()]
    const outcomes = [waiting, beyond].map(record => {
      writer.enqueue(record)
      return expect(writer.recorded(record.trace_id)).rejects
    })
    await outcomes[1]!.toThrow('the queue is full')
    await Promise.all([writer.close(), outcomes[0]!.toThrow('did not answer before the end')])
    writer.enqueue(late)
    await expect(writer.recorded(late.trace_id)).rejects.toThrow('the writer is closed')
    expect(await stored(db)).toEqual([])
  })

  it('spills at once while another process holds the store', async () => {
    const db = await fresh()
    const other = writerLease({ db, clock: systemClock, holder: 'other', ttlMs: 600_000, isGone: () => false })
    await other.hold()
    const memory = memorySpill()
    const writer = testWriter(db, { mode: 'durable', spill: memory.spill })
    const record = sampleTrace()
    writer.enqueue(record)
    await writer.recorded(record.trace_id)
    expect(memory.lines()).toHaveLength(1)
    await other.release()
    await expect.poll(() => stored(db), { interval: 20, timeout: 20_000 }).toEqual([record.trace_id])
    await writer.close()
  })
})

describe('the lease', () => {
  it('stops a writer whose time ran out, in the statement that would have written', async () => {
    const db = await fresh()
    const clock = manualClock(new Date('2026-01-02T00:00:00Z'))
    const slow = testWriter(db, { clock, holder: 'slow' })
    slow.enqueue(sampleTrace())
    await slow.flush()
    // The term ended and another process took over; the slow one still believes in its own.
    await db.execute("update writer_lease set holder = 'quick', epoch = epoch + 1, expires_ms = 9e15")
    const memory = memorySpill()
    slow.enqueue(sampleTrace())
    await expect
      .poll(async () => (await db.execute('select wanted_by from writer_lease')).rows[0]?.wanted_by)
      .toBe('slow')
    expect(await stored(db)).toHaveLength(1)
    expect(memory.lines()).toEqual([])
    await db.execute('update writer_lease set expires_ms = 0')
    await slow.close()
    expect(await stored(db)).toHaveLength(2)
    expect(await verified(db)).toMatchObject({ valid: true, records: 2 })
  })

  it('leaves no hole behind records that a server lost under it, and says so', async () => {
    const db = await fresh()
    const lines: string[] = []
    const log = createLog({ filter: parseLogFilter('error')!, write: line => lines.push(line) })
    const writer = testWriter(db, { log })
    for (let at = 0; at < 3; at++) writer.enqueue(sampleTrace())
    await writer.flush()
    await db.execute('delete from traces where seq > 0')
    await db.execute('delete from checkpoints')
    writer.enqueue(sampleTrace())
    await writer.close()
    expect(await verified(db)).toMatchObject({ valid: true, records: 2 })
    expect(lines.join('')).toMatch(/"lastSeq":2,"nowSeq":0.*has lost records that it had confirmed/)
  })

  it('does not wait for a process that is known to have ended', async () => {
    const db = await fresh()
    const dead = writerLease({ db, clock: systemClock, holder: 'dead', ttlMs: 600_000, isGone: () => false })
    await dead.hold()
    const next = writerLease({ db, clock: systemClock, holder: 'next', ttlMs: 1000, isGone: name => name === 'dead' })
    expect(await next.hold()).toEqual({ holder: 'next', epoch: 2 })
  })
})

describe('checkpoints', () => {
  it('are copied to every sink, also those that a sink refused at first', async () => {
    const db = await fresh()
    const copies: string[] = []
    let refuse = true
    const sinks = [
      {
        name: 'file',
        async append(line: string) {
          if (refuse) throw new Error('not now')
          copies.push(line)
        },
      },
    ]
    const writer = testWriter(db, { sinks, limits: { checkpoint_records: 2 } })
    for (let round = 0; round < 3; round++) {
      writer.enqueue(sampleTrace())
      writer.enqueue(sampleTrace())
      await writer.flush()
      refuse = false
    }
    await writer.close()
    expect(copies.map(line => JSON.parse(line))).toEqual(await storedCheckpoints(db))
    expect(copies).toHaveLength(3)
  })

  it('say once that the newest copy is not of this store, which is older than what it published', async () => {
    const db = await fresh()
    const copies: string[] = []
    const said: string[] = []
    const sink = {
      name: 'file',
      append: async (line: string) => void copies.push(line),
      tail: async () => copies.join('\n'),
    }
    const log = createLog({ filter: parseLogFilter('error')!, write: line => said.push(line) })
    const write = async (store: Db) => {
      const writer = testWriter(store, { sinks: [sink], log, limits: { checkpoint_records: 1 } })
      for (let count = 0; count < 2; count++) {
        writer.enqueue(sampleTrace())
        await writer.flush()
      }
      await writer.close()
    }
    await write(db)
    await write(db)
    expect(said).toEqual([])
    await db.execute('delete from traces where seq = 3')
    await db.execute('delete from checkpoints where seq = 3')
    await write(db)
    expect(said.map(line => JSON.parse(line))).toMatchObject([
      { level: 'error', file: 'file', tenant_id: 'default', seq: 3 },
    ])
    await write(db)
    expect(said).toHaveLength(1)
    await write(await fresh())
    expect(said).toHaveLength(2)
  })

  it('are not made for a chain whose end was changed while nobody wrote, and the status says where', async () => {
    const db = await fresh()
    const first = testWriter(db, { limits: { checkpoint_seconds: 3600 } })
    for (let count = 0; count < 4; count++) first.enqueue(sampleTrace())
    await first.close()
    await db.execute("update traces set body = replace(body, '0.0092', '9.0092') where seq = 3")
    const second = testWriter(db)
    second.start()
    second.enqueue(sampleTrace())
    await second.flush()
    expect(second.status().broken).toEqual([])
    await second.close()
    await db.execute("update traces set body = replace(body, 'claude-code', 'claude-xxxx') where seq = 4")
    await db.execute('delete from checkpoints where seq = 4')
    const third = testWriter(db)
    third.start()
    third.enqueue(sampleTrace())
    await third.flush()
    expect(third.status().broken).toEqual([{ tenant_id: 'default', seq: 4, reason: 'hash' }])
    await third.close()
    expect((await storedCheckpoints(db)).map(({ seq }) => seq)).toEqual([3])
  })

  it('begin a pruned chain: what is older goes, what stays verifies', async () => {
    const db = await fresh()
    const writer = testWriter(db)
    const day = 86_400_000
    for (let count = 0; count < 10; count++) writer.enqueue(sampleTrace({ at: count * day }))
    expect(await writer.prune('default', new Date(6 * day))).toBe(6)
    for (let count = 0; count < 3; count++) writer.enqueue(sampleTrace({ at: (20 + count) * day }))
    expect(await writer.prune('default', new Date(6 * day))).toBe(0)
    await writer.close()
    expect(await verified(db)).toEqual({
      valid: true,
      records: 7,
      tenants: [
        {
          tenant_id: 'default',
          records: 7,
          broken_at: null,
          reason: null,
          last_checkpoint: 12,
          unanchored_tail: 0,
          unanchored_feedback: 0,
        },
      ],
    })
    const next = testWriter(db)
    expect(await next.prune('default', new Date(100 * day))).toBe(7)
    next.enqueue(sampleTrace())
    await next.close()
    expect((await db.execute('select seq from traces')).rows.map(row => row.seq)).toEqual([13])
    expect(await verified(db)).toMatchObject({ valid: true, records: 1 })
  })
})
