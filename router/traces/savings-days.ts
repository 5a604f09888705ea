import type { InStatement } from '@libsql/client/web'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { evalsDays, savingsDays, traces } from '../schema/tables.ts'
import { evalSums, rowsOfDay, rowsOfStretch } from './eval-sums.ts'
import { type LeaseTerm, leaseCondition } from './lease.ts'
import { DAY_MS, dayOf, stretches, sumColumns, sums } from './savings.ts'
import { endsOf } from './stored-records.ts'

/** Calls that began in a day may end so long after it. */
const OPEN_MS = 6 * 3_600_000

/** The day that a record is of, where that is over and may have been summed up. */
export interface LateDay {
  tenant: string
  day: number
}

/** The days of records that come when their day is over. */
export function lateDays(records: readonly UnsealedTrace[], now: Date): LateDay[] {
  const today = dayOf(now.getTime())
  const found = new Map<string, LateDay>()
  for (const { tenant_id: tenant, ts } of records) {
    const day = dayOf(Date.parse(ts))
    if (day < today) found.set(`${day} ${tenant}`, { tenant, day })
  }
  return [...found.values()]
}

/** Forgets the sums of a day, for the transaction that adds a record to it. */
export function dropDay({ tenant, day }: LateDay, { holder, epoch }: LeaseTerm): InStatement {
  return {
    sql: `delete from savings_days where tenant_id = ? and day = ? and ${leaseCondition}`,
    args: [tenant, day, holder, epoch],
  }
}

/** Forgets the sums of days up to the one that `before` is in, for the transaction that deletes records of theirs. */
export function dropDaysUpTo(tenant: string, before: number, { holder, epoch }: LeaseTerm): InStatement {
  return {
    sql: `delete from savings_days where tenant_id = ? and day <= ? and ${leaseCondition}`,
    args: [tenant, dayOf(before), holder, epoch],
  }
}

const columns = `tenant_id, day, route, model, ${sumColumns.join(', ')}`

const ofRecords = `
  select tenant_id, ?, coalesce(cast(route_ix as text), 'none') as route, coalesce(served_model, 'none') as model, ${sums}
  from traces indexed by traces_time where tenant_id = ? and ts_ms >= ? and ts_ms < ? group by route, model`

const ofDay = ({ tenant, day }: LateDay) => [day, tenant, day * DAY_MS, (day + 1) * DAY_MS]

// The times with a plus: the few records behind a place are read, not all of a day.
export const unchangedSql = `(select min(seq) from traces where tenant_id = ?) = ?
  and not exists (select 1 from traces where tenant_id = ? and seq > ? and +ts_ms >= ? and +ts_ms < ?)`

type DaySums = Pick<RowOf<typeof savingsDays>, 'route' | 'model' | (typeof sumColumns)[number]>

/**
 * Sums a day up in stretches, with commits in between, and keeps the sums if the records of the day are still the same: none came late, and none
 * was pruned. Says whether it did.
 */
async function sumUp(db: Db, of: LateDay, { holder, epoch }: LeaseTerm, isOver: () => boolean): Promise<boolean> {
  const before = await endsOf(db, of.tenant)
  if (before === undefined) return false
  const groups = new Map<string, DaySums>()
  const evals = evalSums()
  const day = { since: new Date(of.day * DAY_MS), until: new Date((of.day + 1) * DAY_MS) }
  for await (const { since, until } of stretches(db, of.tenant, day)) {
    if (isOver()) return false
    const answer = await db.execute({
      sql: ofRecords,
      args: [of.day, of.tenant, since?.getTime() ?? 0, until?.getTime() ?? 0],
    })
    for (const row of rowsOf<DaySums>(answer)) {
      const key = JSON.stringify([row.route, row.model])
      const known = groups.get(key)
      if (known === undefined) groups.set(key, { ...row })
      else for (const name of sumColumns) known[name] += row[name]
    }
    evals.add(await rowsOfStretch(db, of.tenant, { since, until }))
  }
  const values = sumColumns.map(name => `value ->> '${name}'`).join(', ')
  const still = [
    ...[holder, epoch],
    ...[of.tenant, before.low],
    ...[of.tenant, before.high, day.since.getTime(), day.until.getTime()],
  ]
  const [kept] = await db.write([
    {
      sql: `insert or replace into savings_days (${columns})
        select ?, ?, value ->> 'route', value ->> 'model', ${values} from json_each(?) where ${leaseCondition} and ${unchangedSql}`,
      args: [of.tenant, of.day, JSON.stringify([...groups.values()]), ...still],
    },
    {
      sql: `insert or replace into evals_days (tenant_id, day, sums) select ?, ?, ? where ${leaseCondition} and ${unchangedSql}`,
      args: [of.tenant, of.day, JSON.stringify(evals.rows()), ...still],
    },
  ])
  return kept!.rowsAffected > 0
}

/** The days whose sums are not those of their records; undefined where there is none. */
export async function wrongSums(db: Db, tenant?: string): Promise<{ first: LateDay; count: number } | undefined> {
  const answer = await db.execute({
    sql: 'select distinct tenant_id, day from savings_days where tenant_id = coalesce(?, tenant_id) order by 1, 2',
    args: [tenant ?? null],
  })
  const kept = `select ${columns} from savings_days where tenant_id = ? and day = ?`
  const wrong: LateDay[] = []
  for (const row of rowsOf<Pick<RowOf<typeof savingsDays>, 'tenant_id' | 'day'>>(answer)) {
    const of = { tenant: row.tenant_id, day: row.day }
    const both = await db.execute({
      sql: `with kept as (${kept}), made as (${ofRecords})
        select exists (select * from kept except select * from made) or exists (select * from made except select * from kept) as differs`,
      args: [of.tenant, of.day, ...ofDay(of)],
    })
    if (both.rows[0]?.differs === 1 || !(await areEvals(db, of))) wrong.push(of)
  }
  const [first] = wrong
  return first && { first, count: wrong.length }
}

/** Whether what is kept of a day for evals, if anything, is what its records say. */
async function areEvals(db: Db, { tenant, day }: LateDay): Promise<boolean> {
  const sql = 'select * from evals_days where tenant_id = ? and day = ?'
  const [kept] = rowsOf<RowOf<typeof evalsDays>>(await db.execute({ sql, args: [tenant, day] }))
  return kept === undefined || kept.sums === JSON.stringify(await rowsOfDay(db, tenant, day))
}

/** Sums up what was saved on days that are over, so that savings of all time do not read every record. */
export function savingsByDay({ db, clock }: { db: Db; clock: Pick<Clock, 'now'> }) {
  /** Of each tenant: every day before is summed up, or has no record. */
  const next = new Map<string, number>()

  return {
    /** The oldest day of each tenant that is over and not summed up; one at a time, as a large day takes seconds. */
    async step(tenants: readonly string[], term: LeaseTerm, isOver: () => boolean): Promise<void> {
      const end = dayOf(clock.now().getTime() - OPEN_MS)
      for (const tenant of tenants) {
        const from = next.get(tenant) ?? 0
        if (from >= end) continue
        const day = await oldestOpen(db, tenant, from)
        if (day !== undefined && day < end && !(await sumUp(db, { tenant, day }, term, isOver))) continue
        // What came late meanwhile has set it back.
        if ((next.get(tenant) ?? 0) === from) next.set(tenant, day === undefined ? end : Math.min(day + 1, end))
      }
    },
    /** The sums of these days were dropped. */
    reopened(days: readonly LateDay[]): void {
      for (const { tenant, day } of days) next.set(tenant, Math.min(next.get(tenant) ?? 0, day))
    },
  }
}

/** The first day from `from` on that has a record and no sums. */
async function oldestOpen(db: Db, tenant: string, from: number): Promise<number | undefined> {
  const answer = await db.execute({
    sql: 'select day from evals_days where tenant_id = ? and day >= ?',
    args: [tenant, from],
  })
  const closed = new Set(rowsOf<Pick<RowOf<typeof evalsDays>, 'day'>>(answer).map(({ day }) => day))
  for (let day = from; ; day++) {
    if (closed.has(day)) continue
    const first = await db.execute({
      sql: 'select ts_ms from traces where tenant_id = ? and ts_ms >= ? order by ts_ms limit 1',
      args: [tenant, day * DAY_MS],
    })
    const [row] = rowsOf<Pick<RowOf<typeof traces>, 'ts_ms'>>(first)
    if (row === undefined) return undefined
    day = dayOf(row.ts_ms)
    if (!closed.has(day)) return day
  }
}
