import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { type Act, auditLog } from './log.ts'

const act: Act = { tenantId: 'default', actor: 'key-1', via: 'api', action: 'createSchedule', target: '/v1/schedules' }
const all = { limit: 200, after: undefined }

async function open(db?: Db) {
  const opened = db ?? (await openDb(':memory:'))
  await migrate(opened, 'runtime', runtimeSteps)
  const clock = manualClock(new Date('2026-01-02T03:04:05.000Z'))
  const log = auditLog({ db: opened, now: clock.now, newId: uuidv7 })
  return {
    db: opened,
    clock,
    log,
    async add(tenantId = 'default', object = 'o'): Promise<void> {
      const one = { ...act, tenantId }
      await log.done(await log.intend(one), one, { outcome: 'done', object })
    },
  }
}

describe('the audit log', () => {
  it('holds a chain for each tenant that anybody can recompute from what it lists', async () => {
    const { add, log, db } = await open()
    for (const tenant of ['default', 'other', 'default', 'default']) await add(tenant)
    const entries = (await log.list('default', all)).toReversed()
    expect(entries.map(({ seq, tenantId, object }) => [seq, tenantId, object])).toEqual(
      [1, 2, 3].map(n => [n, 'default', 'o']),
    )
    let head = createHash('sha256').update('waybill/audit/v1\ndefault').digest()
    for (const { hash, ...rest } of entries) {
      // Canonical JSON of flat objects of plain texts is what JSON.stringify writes with its keys sorted.
      const text = JSON.stringify(rest, Object.keys(rest).sort())
      head = createHash('sha256').update(head).update(text).digest()
      expect(head.toString('hex')).toBe(hash)
    }
    expect(await log.verify('default')).toEqual({
      valid: true,
      entries: 3,
      head: { seq: 3, hash: head.toString('hex') },
    })
    expect(await log.verify('other')).toMatchObject({ valid: true, entries: 1 })
    expect(await log.verify('nobody')).toEqual({ valid: true, entries: 0 })
    db.close()
  })

  it('shows any change of what it holds', async () => {
    const edits: [name: string, sql: (seq: number) => string, reason: string, all: boolean][] = [
      ['edit', seq => `update audit_log set body = replace(body, 'key-1', 'key-2') where seq = ${seq}`, 'hash', true],
      ['hash', seq => `update audit_log set hash = '${'0'.repeat(64)}' where seq = ${seq}`, 'hash', true],
      ['drop', seq => `delete from audit_log where seq = ${seq}`, 'seq', false],
      ['number', seq => `update audit_log set seq = seq + 100 where seq = ${seq}`, 'seq', true],
    ]
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.constantFrom(...edits),
        async (seq, [, sql, reason, last]) => {
          fc.pre(last || seq < 6)
          const { add, log, db } = await open()
          for (let count = 0; count < 6; count++) await add()
          await db.execute(sql(seq))
          expect(await log.verify('default')).toMatchObject({ valid: false, brokenAt: seq, reason })
          db.close()
        },
      ),
      { numRuns: 25 },
    )
  })

  it('shows two entries that changed places, one from another tenant, one put at the end, and an end that was cut off', async () => {
    for (const [statements, verdict] of [
      [
        [
          'update audit_log set seq = 99 where seq = 2',
          'update audit_log set seq = 2 where seq = 3',
          'update audit_log set seq = 3 where seq = 99',
        ],
        { brokenAt: 2, reason: 'seq' },
      ],
      [
        [
          "delete from audit_log where tenant_id = 'default' and seq = 1",
          "insert into audit_log select 'default', seq, hash, body from audit_log where tenant_id = 'other' and seq = 1",
        ],
        { brokenAt: 1, reason: 'hash' },
      ],
      [["insert into audit_log values ('default', 5, 'aa', '{\"seq\":5}')"], { brokenAt: 5, reason: 'hash' }],
      [["delete from audit_log where tenant_id = 'default' and seq > 2"], { brokenAt: 3, reason: 'head' }],
    ] as const) {
      const { add, log, db } = await open()
      for (let count = 0; count < 4; count++) await add()
      await add('other')
      for (const sql of statements) await db.execute(sql)
      expect(await log.verify('default')).toMatchObject({ valid: false, ...verdict })
      db.close()
    }
  })

  it('shows a history that was rewritten as a whole, to whoever noted an earlier end of it', async () => {
    const { add, log, db } = await open()
    await add('default', 'first')
    await add('default', 'second')
    const { head } = await log.verify('default')
    await add()
    expect(await log.verify('default', head)).toMatchObject({ valid: true, entries: 3 })
    await db.execute('delete from audit_log')
    await db.execute('delete from audit_heads')
    expect(await log.verify('default', head)).toMatchObject({ valid: false, reason: 'noted' })
    for (let count = 0; count < 3; count++) await add('default', 'another')
    expect(await log.verify('default')).toMatchObject({ valid: true })
    expect(await log.verify('default', head)).toMatchObject({ valid: false, brokenAt: 2, reason: 'noted' })
    db.close()
  })

  it('verifies more entries than it reads at once, in order', async () => {
    const { add, log, db } = await open()
    for (let count = 0; count < 2000; count++) await add()
    let turns = 0
    const passing = setInterval(() => turns++, 0)
    expect(await log.verify('default')).toMatchObject({ valid: true, entries: 2000, head: { seq: 2000 } })
    clearInterval(passing)
    // Other calls are answered meanwhile.
    expect(turns).toBeGreaterThan(1)
    await db.execute("update audit_log set body = replace(body, 'key-1', 'key-9') where seq = 1500")
    expect(await log.verify('default')).toMatchObject({ valid: false, brokenAt: 1500 })
    db.close()
  })

  it('keeps one chain when several processes write at once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-audit-'))
    const dbs = await Promise.all([1, 2, 3].map(() => openDb(join(folder, 'one.db'))))
    const rooms = await Promise.all(dbs.map(db => open(db)))
    await Promise.all(rooms.flatMap(fixture => Array.from({ length: 15 }, () => fixture.add())))
    expect(await rooms[0]!.log.verify('default')).toMatchObject({ valid: true, entries: 45 })
    for (const db of dbs) db.close()
    await rm(folder, { recursive: true, force: true })
  })
})

describe('an act', () => {
  it('that was interrupted becomes an entry with an unknown outcome, once, and is not done afterwards', async () => {
    const { log, clock, db } = await open()
    const intent = await log.intend(act)
    clock.advance(149_000)
    await log.recover()
    expect(await log.list('default', all)).toEqual([])
    clock.advance(2000)
    await Promise.all([log.recover(), log.recover()])
    await log.done(intent, act, { outcome: 'done' })
    expect(await log.list('default', all)).toMatchObject([
      { seq: 1, outcome: 'unknown', at: '2026-01-02T03:04:05.000Z', action: 'createSchedule' },
    ])
    expect(await log.verify('default')).toMatchObject({ valid: true, entries: 1 })
    db.close()
  })

  it('that was refused leaves nothing', async () => {
    const { log, clock, db } = await open()
    await log.drop(await log.intend(act))
    clock.advance(500_000)
    await log.recover()
    expect(await log.list('default', all)).toEqual([])
    db.close()
  })
})
