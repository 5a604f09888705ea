import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import { expectWithin } from '../../tests/crowding.ts'
import { disableSchedules } from './store.ts'
import { START, scheduleFixture } from './testing/schedule-fixture.ts'

const MINUTE = 60_000
const onTime = { missedBeforeMs: 0 }

describe('a schedule that is due', () => {
  it('starts one run for its window, with its input and its name, and goes on to the next', async () => {
    const { add, fire, clock, runsOf, read, fates, metrics, close } = await scheduleFixture()
    const id = await add('*/5 * * * *')
    await fire(onTime)
    expect(await runsOf(id)).toEqual([])
    clock.advance(MINUTE + 250)
    await fire(onTime)
    await fire(onTime)
    const [run, ...more] = await runsOf(id)
    expect(more).toEqual([])
    expect(run).toMatchObject({
      agentName: 'clerk',
      status: 'queued',
      scheduleId: id,
      input: { n: 1 },
      trigger: { kind: 'schedule', ref: id },
    })
    expect(await fates(id)).toEqual(['03:05:00 started'])
    expect(await read(id)).toMatchObject({
      dueMs: Date.parse('2026-01-02T03:10:00Z'),
      lastRunId: run!.id,
      lastFiredMs: clock.now().getTime(),
    })
    const page = metrics.text()
    expect(page).toContain('fires{outcome="started"} 1')
    expect(page).toContain('lag_sum 0.25')
    await close()
  })

  it('fires by the clock of its zone, through the jump of spring and the repeated hour of autumn', async () => {
    const { add, fire, clock, runsOf, fates, close } = await scheduleFixture({ defaultZone: 'Europe/Berlin' })
    clock.advance(Date.parse('2026-03-28T12:00:00Z') - START.getTime())
    const [berlin, utc] = [await add('30 2 * * *'), await add('30 2 * * *', { timezone: 'UTC' })]
    for (let hours = 0; hours < 24; hours++) {
      clock.advance(60 * MINUTE)
      await fire(onTime)
    }
    expect(await fates(berlin)).toEqual(['01:00:00 started'])
    expect(await fates(utc)).toEqual(['02:30:00 started'])
    clock.advance(Date.parse('2026-10-24T12:00:00Z') - clock.now().getTime())
    await fire({ missedBeforeMs: clock.now().getTime() })
    const before = (await runsOf(berlin)).length
    for (let halves = 0; halves < 48; halves++) {
      clock.advance(30 * MINUTE)
      await fire(onTime)
    }
    expect((await runsOf(berlin)).length - before).toBe(1)
    expect((await fates(berlin)).at(-1)).toBe('00:30:00 started')
    await close()
  })

  it('starts after downtime what its policy says', async () => {
    const { add, fire, clock, runsOf, fates, close } = await scheduleFixture()
    const ids = {
      one: await add('*/5 * * * *'),
      none: await add('*/5 * * * *', { catchUp: 'none' }),
      all: await add('*/5 * * * *', { catchUp: 'all' }),
      newest: await add('*/5 * * * *', { catchUp: 'all', catchUpLimit: 2 }),
    }
    clock.advance(12 * MINUTE)
    await fire({ missedBeforeMs: clock.now().getTime() })
    const counts: Record<string, number> = {}
    for (const [name, id] of Object.entries(ids)) counts[name] = (await runsOf(id)).length
    expect(counts).toEqual({ one: 1, none: 0, all: 3, newest: 2 })
    expect(await fates(ids.newest)).toEqual([
      '03:05:00 skipped missed',
      '03:10:00 started caught_up',
      '03:15:00 started caught_up',
    ])
    clock.advance(4 * MINUTE)
    await fire(onTime)
    expect(await fates(ids.none)).toEqual([
      ...['03:05:00 skipped missed', '03:10:00 skipped missed', '03:15:00 skipped missed', '03:20:00 started'],
    ])
    await close()
  })

  it('waits for the run before it, or leaves the window, by its overlap policy', async () => {
    const { add, fire, clock, fates, read, runsOf, endRuns, close } = await scheduleFixture()
    const [skip, queue] = [
      await add('*/5 * * * *', { overlap: 'skip' }),
      await add('*/5 * * * *', { overlap: 'queue' }),
    ]
    for (let windows = 0; windows < 3; windows++) {
      clock.advance(5 * MINUTE)
      await fire(onTime)
    }
    expect(await fates(skip)).toEqual(['03:05:00 started', '03:10:00 skipped overlap', '03:15:00 skipped overlap'])
    expect(await fates(queue)).toEqual(['03:05:00 started', '03:10:00 queued', '03:15:00 skipped queue_full'])
    await endRuns()
    await fire(onTime)
    expect((await fates(queue))[1]).toBe('03:10:00 started')
    expect((await read(queue)).pendingMs).toBeNull()
    expect((await runsOf(queue)).length).toBe(2)
    expect((await runsOf(skip)).length).toBe(1)
    await close()
  })

  it('has its turn within some hundred windows, whatever another tenant has to catch up', async () => {
    const admitted: string[] = []
    const { add, fire, clock, db, close } = await scheduleFixture({
      async admits({ tenantId }) {
        // A minute passes meanwhile, in which the schedule of the other tenant is due again.
        if (admitted.push(tenantId) === 1000) clock.advance(MINUTE)
        return { statements: [], exceeded: false }
      },
    })
    await db.execute("insert into tenants values ('other', '\"o\"', 0)")
    for (let at = 0; at < 250; at++) await add('* * * * *', { catchUp: 'all', catchUpLimit: 100 })
    await add('* * * * *', { tenantId: 'other' })
    clock.advance(120 * MINUTE)
    await fire({ missedBeforeMs: clock.now().getTime() })
    const turns = admitted.flatMap((tenantId, at) => (tenantId === 'other' ? [at] : []))
    expect(turns.length).toBeGreaterThan(1)
    expect(turns[0]).toBeLessThan(500)
    expect(turns.find(at => at >= 1000)).toBeLessThan(1500)
    await close()
  })

  it('is refused, and says why, where there is no agent or no budget', async () => {
    const told: string[] = []
    const { add, fire, clock, fates, read, runsOf, close } = await scheduleFixture({
      findAgent: async (_tenant, name) =>
        name === 'gone' ? undefined : { agentId: 'a', versionId: 'v', manifest: manifest.parse({}) },
      admits: async ({ agentName }) => (agentName === 'poor' ? undefined : { statements: [], exceeded: false }),
      refused: ({ scheduleId, reason }) => {
        told.push(`${scheduleId} ${reason}`)
        return []
      },
    })
    const [gone, poor] = [
      await add('*/5 * * * *', { agentName: 'gone' }),
      await add('*/5 * * * *', { agentName: 'poor' }),
    ]
    clock.advance(MINUTE)
    await fire(onTime)
    expect(await fates(gone)).toEqual(['03:05:00 refused agent_not_found'])
    expect(await fates(poor)).toEqual(['03:05:00 refused budget_exceeded'])
    expect((await read(poor)).lastError).toBe('budget_exceeded')
    expect(told.toSorted()).toEqual([`${gone} agent_not_found`, `${poor} budget_exceeded`].toSorted())
    expect([...(await runsOf(gone)), ...(await runsOf(poor))]).toEqual([])
    await close()
  })

  it('stands still when this host cannot time it, and holds up nobody', async () => {
    const { add, fire, clock, db, read, runsOf, close } = await scheduleFixture()
    const [bad, good] = [await add('*/5 * * * *'), await add('*/5 * * * *')]
    await db.execute({ sql: "update schedules set timezone = 'Mars/Olympus' where id = ?", args: [bad] })
    clock.advance(MINUTE)
    await fire(onTime)
    expect(await read(bad)).toMatchObject({ dueMs: null, lastError: 'not_timed' })
    expect((await runsOf(good)).length).toBe(1)
    await close()
  })

  it('stands still when it is damaged in the store, and holds up no other', async () => {
    const { add, fire, clock, db, runsOf, close } = await scheduleFixture()
    const [bad, good] = [await add('*/5 * * * *'), await add('*/5 * * * *')]
    await db.execute({ sql: "update schedules set input = '{' where id = ?", args: [bad] })
    clock.advance(MINUTE)
    await fire(onTime)
    const { rows } = await db.execute({ sql: 'select due_ms, last_error from schedules where id = ?', args: [bad] })
    expect(rows).toEqual([{ due_ms: null, last_error: 'damaged' }])
    expect((await runsOf(good)).length).toBe(1)
    await close()
  })

  it('stays due while its input is sealed under a key that is not here', async () => {
    const { add, fire, clock, db, close } = await scheduleFixture()
    const id = await add('*/5 * * * *')
    await db.execute({ sql: "update schedules set input = 'wbd1.other.x' where id = ?", args: [id] })
    clock.advance(MINUTE)
    await expect(fire(onTime)).rejects.toThrow(/sealed under the data key other/)
    const { rows } = await db.execute({ sql: 'select due_ms, last_error from schedules where id = ?', args: [id] })
    expect(rows).toEqual([{ due_ms: expect.any(Number), last_error: null }])
    await close()
  })

  it('is off once its agent is deleted', async () => {
    const { add, fire, clock, db, read, fates, close } = await scheduleFixture()
    const id = await add('*/5 * * * *', { overlap: 'queue' })
    clock.advance(10 * MINUTE)
    await fire(onTime)
    await db.write(disableSchedules({ tenantId: 'default', name: 'clerk' }, clock.now().getTime()))
    clock.advance(10 * MINUTE)
    await fire(onTime)
    expect(await read(id)).toMatchObject({ enabled: false, dueMs: null, pendingMs: null, lastError: 'agent_not_found' })
    expect(await fates(id)).toEqual(['03:05:00 started', '03:10:00 skipped paused'])
    await close()
  })

  it('has one run for each window when several instances see it at once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-schedules-'))
    const dbs = await Promise.all([1, 2, 3].map(() => openDb(join(folder, 'one.db'))))
    const first = await scheduleFixture({ db: dbs[0]! })
    const rooms = [first, ...(await Promise.all(dbs.slice(1).map(db => scheduleFixture({ db, clock: first.clock }))))]
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        first.add('*/5 * * * * *', { catchUp: 'all', catchUpLimit: 100, ...(at % 3 === 0 && { overlap: 'queue' }) }),
      ),
    )
    for (let rounds = 0; rounds < 5; rounds++) {
      first.clock.advance(15_000)
      await Promise.all(rooms.map(fixture => fixture.fire(onTime)))
      await first.endRuns()
      await Promise.all(rooms.map(fixture => fixture.fire(onTime)))
    }
    for (const id of ids) {
      const { rows } = await first.db.execute({
        sql: `select count(*) as fires, count(distinct window_ms) as windows, count(run_id) as started,
          (select count(*) from runs where schedule_id = ?1) as runs,
          (select count(*) from run_data d join runs r on r.id = d.run_id where r.schedule_id = ?1) as inputs
          from schedule_fires where schedule_id = ?1`,
        args: [id],
      })
      const { fires, windows, started, runs, inputs } = rows[0]!
      expect({ fires, windows, runs, inputs }).toEqual({ fires: 15, windows: 15, runs: started, inputs: started })
      expect((await first.read(id)).overlap === 'queue' || started === 15).toBe(true)
    }
    for (const fixture of rooms) await fixture.close()
    for (const db of dbs) db.close()
    await rm(folder, { recursive: true, force: true })
  })
})

it('keeps up with 10,000 schedules that fire over a minute', async () => {
  const { add, fire, clock, db, close } = await scheduleFixture()
  for (let at = 0; at < 10_000; at++) await add(`${at % 60} * * * * *`)
  const lags: number[] = []
  for (let second = 0; second < 60; second++) {
    clock.advance(1000)
    const before = performance.now()
    await fire(onTime)
    lags.push(performance.now() - before)
  }
  const { rows } = await db.execute('select count(*) as runs from runs')
  expect(Number(rows[0]!.runs)).toBe(10_000)
  // In real time this is added to what the timer takes; a whole second's schedules are started within it.
  expectWithin(lags.toSorted((a, b) => a - b)[59]!, 900)
  await close()
})
