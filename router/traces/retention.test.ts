import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { createLog, silentLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { eventually } from '../../tests/eventually.ts'
import { createRouter } from '../router.ts'
import { routerSteps } from '../schema/steps.ts'
import { publishedKeys, trustedKeys } from './keys.ts'
import { retention } from './retention.ts'
import { storedCheckpoints, storedFeedback, storedRecords } from './stored-records.ts'
import { sampleTrace } from './testing/records.ts'
import { verifyRecords } from './verify.ts'
import { traceWriter } from './writer.ts'

const DAY = 86_400_000
const key = () => signer(new Uint8Array(32).fill(9))

describe('retention', () => {
  let folder: string
  let db: Db
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-retention-'))
    db = await openDb(join(folder, 'router.db'), { synchronous: 'normal' })
    await migrate(db, 'router', routerSteps)
  })
  afterEach(async () => {
    db.close()
    await rm(folder, { recursive: true, force: true })
  })

  const left = async () => {
    const { rows } = await db.execute('select tenant_id, seq from traces order by tenant_id, seq')
    return rows.map(row => `${row.tenant_id} ${row.seq}`)
  }
  const verified = async () =>
    verifyRecords({
      records: storedRecords(db),
      feedback: storedFeedback(db),
      checkpoints: await storedCheckpoints(db),
      keys: trustedKeys(await publishedKeys(db)),
    })

  it('of a router drops what is older than its config keeps, behind a checkpoint, and what stays verifies', async () => {
    const writer = traceWriter({
      db,
      clock: systemClock,
      log: silentLog(),
      metrics: createMetrics(),
      mode: 'best-effort',
      sha256,
      signer: await key(),
    })
    writer.start()
    for (const days of [40, 35, 20, 1]) {
      for (const tenant of ['one', 'two']) writer.enqueue(sampleTrace({ tenant, at: Date.now() - days * DAY }))
    }
    await writer.close()
    expect(await left()).toHaveLength(8)

    const start = async (config: string) => {
      const router = createRouter({ db, config, receiptStorage: { durable: false, signer: await key() } })
      await router.ready()
      return router
    }
    const receiptStorage = await start('[store]\nretention_days = 0\n')
    await receiptStorage.close()
    expect(await left()).toHaveLength(8)

    const dropping = await start('[store]\nretention_days = 30\n')
    await eventually(async () => expect(await left()).toEqual(['one 2', 'one 3', 'two 2', 'two 3']))
    await dropping.close()
    expect(await verified()).toMatchObject({ valid: true, records: 4 })
    expect((await storedCheckpoints(db)).map(({ kind, seq, tenant_id }) => `${tenant_id} ${kind} ${seq}`)).toEqual(
      expect.arrayContaining(['one prune 1', 'two prune 1']),
    )
    // A record that stays is as protected as before.
    await db.execute(
      `update traces set body = replace(body, '"status":200', '"status":201') where tenant_id = 'two' and seq = 3`,
    )
    expect(await verified()).toMatchObject({ valid: false, tenants: [{ broken_at: null }, { broken_at: 1 }] })
  })

  it('drops nothing by a clock that a router starts with a year ahead', async () => {
    const clock = { ...systemClock, now: () => new Date(Date.now() + 365 * DAY) }
    const [deps, lines] = [{ db, metrics: createMetrics(), mode: 'best-effort' as const, sha256 }, [] as string[]]
    const writer = traceWriter({ ...deps, clock: systemClock, log: silentLog(), signer: await key() })
    writer.start()
    for (const days of [20, 1]) writer.enqueue(sampleTrace({ at: Date.now() - days * DAY }))
    await writer.close()
    const log = createLog({ filter: { all: 'warn', byTarget: new Map() }, write: line => void lines.push(line) })
    const config = '[store]\nretention_days = 30\n'
    const router = createRouter({ db, clock, log, config, receiptStorage: { durable: false, signer: await key() } })
    await router.ready()
    await eventually(() => expect(lines.join('')).toMatch(/days ahead of what was kept last/))
    await router.close()
    expect(await left()).toHaveLength(2)
  })

  it('deletes so many rows of each kind in a transaction, and no more', async () => {
    const most: number[] = []
    const write: Db['write'] = async statements => {
      const results = await db.write(statements)
      most.push(...results.map(({ rowsAffected }) => rowsAffected))
      return results
    }
    const deps = {
      clock: systemClock,
      log: silentLog(),
      metrics: createMetrics(),
      mode: 'best-effort' as const,
      sha256,
    }
    const writer = traceWriter({ ...deps, db: { ...db, write }, signer: await key() })
    writer.start()
    const old = Date.now() - 40 * DAY
    for (let at = 0; at < 600; at++) writer.enqueue(sampleTrace({ at: old + at }))
    await writer.flush()
    const numbers = 'with recursive n(i) as (select 0 union all select i + 1 from n where i < 999)'
    await db.execute(
      `insert into shadows ${numbers} select 'default', 't' || i, 'r', ${old} + i, 1, 1, 1, 1, 1, 1, 1 from n`,
    )
    // Of records that were dropped before.
    await db.execute(
      `insert into feedback ${numbers} select 'default', i, 'f' || i, 't' || i, 'g', 'r', 'right', ${old} + i, 'h', '{}' from n`,
    )
    most.length = 0
    expect(await writer.prune('default', new Date(Date.now() - 30 * DAY))).toBe(600)
    expect(Math.max(...most)).toBe(500)
    const { rows } = await db.execute('select (select count(*) from shadows) + (select count(*) from feedback) as rows')
    expect(rows[0]).toEqual({ rows: 0 })
    await writer.close()
  })

  it('lets the writer commit between two steps', async () => {
    const order: string[] = []
    const late = sampleTrace({ at: Date.now() })
    const write: Db['write'] = async statements => {
      const results = await db.write(statements)
      if (!JSON.stringify(statements).includes('delete from traces')) return results
      if (order.length === 0) {
        writer.enqueue(late)
        void writer.recorded(late.trace_id).then(() => order.push('recorded'))
      }
      order.push('step')
      return results
    }
    const deps = { clock: systemClock, log: silentLog(), metrics: createMetrics(), sha256 }
    const writer = traceWriter({ ...deps, mode: 'durable', db: { ...db, write }, signer: await key() })
    writer.start()
    for (let at = 0; at < 600; at++) writer.enqueue(sampleTrace({ at: Date.now() - 40 * DAY + at }))
    await writer.flush()
    expect(await writer.prune('default', new Date(Date.now() - 30 * DAY))).toBe(600)
    expect(order.slice(0, 3)).toEqual(['step', 'recorded', 'step'])
    await writer.close()
  })

  it('goes on to the next tenant when one fails, comes again, and stops when it is closed', async () => {
    const asked: string[] = []
    let ended = 0
    const old = retention({
      days: 1,
      clock: manualClock(new Date(10 * DAY)),
      newestMs: async () => undefined,
      log: silentLog(),
      tenants: async () => ['bad', 'good'],
      async prune(tenant, before) {
        asked.push(`${tenant} ${before.getTime() / DAY}`)
        if (tenant === 'bad') throw new Error('broken')
        await Promise.resolve()
        return ++ended
      },
      firstMs: 0,
      everyMs: 1,
    })
    await eventually(() => expect(ended).toBeGreaterThan(2))
    await old.close()
    const count = asked.length
    expect(asked.slice(0, 4)).toEqual(['bad 9', 'good 9', 'bad 9', 'good 9'])
    await new Promise(resolve => setImmediate(resolve))
    expect(asked).toHaveLength(count)
  })
})
