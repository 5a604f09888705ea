import type { InStatement, InValue } from '@libsql/client/web'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Log } from '../../shared/log/log.ts'
import { type Db, type RowOf, readRows, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { SealedInput } from '../runs/sealed-input.ts'
import type { scheduleFires } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import { type FireRow, type ScheduleRow, type StoredSchedule, toFire, toRow } from './schedule.ts'
import type { Zones } from './zones.ts'

export interface DueSchedule extends ScheduleRow {
  /** A run of it has not ended. */
  isRunning: boolean
}

const RUNNING = `exists (select 1 from runs
  where schedule_id = s.id and status in ('queued', 'running', 'waiting'))`

const WEIGHT = '(length(input) + coalesce(length(input_box), 0))'

/** Inputs that are read into memory at once, in characters. */
const MOST_INPUT = 16 * 1024 * 1024

export type ScheduleStore = ReturnType<typeof scheduleStore>

export function scheduleStore(db: Db, records: Records, zones: Zones, log: Pick<Log, 'error'>) {
  const read = (row: StoredSchedule) => toRow(row, records)
  const settings = (row: ScheduleRow) => settingsOf(row, zones, records)

  return {
    ...fireStore(db),

    insert(row: ScheduleRow): InStatement {
      return {
        sql: `insert into schedules (id, tenant_id, name, agent_name, cron_expr, timezone, effective_zone, input, input_box,
input_pool, input_hash, input_length, enabled, overlap, catch_up, catch_up_limit, due_ms, created_ms, updated_ms)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        args: [row.id, row.tenantId, ...settings(row), row.dueMs, row.createdMs, row.updatedMs],
      }
    },

    async get(id: string): Promise<ScheduleRow | undefined> {
      const found = await db.execute({ sql: 'select * from schedules where id = ?', args: [storableText(id)] })
      const rows = rowsOf<StoredSchedule>(found)
      return rows[0] && read(rows[0])
    },

    async list(
      tenantId: string,
      { agentName, enabled }: { agentName?: string | undefined; enabled?: boolean | undefined },
      page: PageOf,
    ): Promise<ScheduleRow[]> {
      const { where, order, args } = pageSql(page)
      const filters: InValue[] = []
      let sql = 'select * from schedules where tenant_id = ?'
      if (agentName !== undefined) {
        sql += ' and agent_name = ?'
        filters.push(storableText(agentName))
      }
      if (enabled !== undefined) {
        sql += ' and enabled = ?'
        filters.push(enabled ? 1 : 0)
      }
      const found = await db.execute({ sql: `${sql} ${where} ${order}`, args: [tenantId, ...filters, ...args] })
      return readPage(page, rowsOf<StoredSchedule>(found), read)
    },

    /** Writes a row over the revision that it was made from; false when someone else was first. */
    async replace(row: ScheduleRow): Promise<boolean> {
      const [done] = await db.write([
        {
          sql: `update schedules set name = ?, agent_name = ?, cron_expr = ?, timezone = ?, effective_zone = ?, input = ?,
input_box = ?, input_pool = ?, input_hash = ?, input_length = ?, enabled = ?, overlap = ?, catch_up = ?, catch_up_limit = ?, due_ms = ?, updated_ms = ?, revision = revision + 1
where id = ? and revision = ?`,
          args: [...settings(row), row.dueMs, row.updatedMs, row.id, row.revision],
        },
        // What was waiting for its turn does not start once the schedule is off.
        {
          sql: `update schedule_fires set outcome = 'skipped', reason = 'paused' where schedule_id = ?1 and outcome = 'queued'
and window_ms = (select pending_ms from schedules where id = ?1 and enabled = 0)`,
          args: [row.id],
        },
        { sql: 'update schedules set pending_ms = null where id = ? and enabled = 0', args: [row.id] },
      ])
      return done?.rowsAffected === 1
    },

    /** Its fires stay until they are old: nothing reads them without the schedule. */
    async remove(id: string): Promise<boolean> {
      return (await db.execute({ sql: 'delete from schedules where id = ?', args: [id] })).rowsAffected === 1
    },

    /** Schedules whose next window has come, longest due first of each tenant. */
    due: (nowMs: number, most: number) => firstOf({ db, records, log }, 'due_ms <= ?', 'due_ms', [nowMs, most]),

    /** Schedules with a window that waited for a run which has ended. */
    released: (most: number) =>
      firstOf({ db, records, log }, `pending_ms is not null and not ${RUNNING}`, 'pending_ms', [most]),

    async nextDue(): Promise<number | undefined> {
      const found = await db.execute('select due_ms from schedules where due_ms is not null order by due_ms limit 1')
      return rowsOf<{ due_ms: number }>(found)[0]?.due_ms
    },

    /** Those that were made or fired by a clock which was ahead, in the order of their ids, which begin with the time that it said. */
    async timedAhead(nowMs: number, afterId: string, most: number): Promise<ScheduleRow[]> {
      const found = await db.execute({
        sql: `select * from schedules where id in (select id from schedules where id > ?1
            union select schedule_id from schedule_fires where fired_ms > ?2)
          and id > ?3 and due_ms > ?2 order by id limit ?4`,
        args: [uuidv7(nowMs), nowMs, afterId, most],
      })
      return standing({ db, log }, rowsOf<StoredSchedule>(found), read)
    },

    /** Schedules that go by the deployment's zone and were last timed by another one. */
    async movedByDefault(most: number): Promise<ScheduleRow[]> {
      const found = await db.execute({
        sql: 'select * from schedules where timezone is null and effective_zone <> ? limit ?',
        args: [zones.fallback, most],
      })
      return standing({ db, log }, rowsOf<StoredSchedule>(found), read)
    },
  }
}

/** The windows of schedules that were handled. */
function fireStore(db: Db) {
  return {
    /** Newest window first. */
    async fires(scheduleId: string, page: PageOf): Promise<FireRow[]> {
      const { limit, after } = page
      const found = await db.execute({
        sql: `select * from schedule_fires where schedule_id = ? and window_ms < ? order by window_ms desc limit ?`,
        args: [scheduleId, after?.at ?? Number.MAX_SAFE_INTEGER, limit + 1],
      })
      return readPage(page, rowsOf<RowOf<typeof scheduleFires>>(found), toFire, row => ({
        at: row.window_ms,
        id: scheduleId,
      }))
    },

    /** Forgets windows that were handled before a moment, at most so many at once. */
    async prune(beforeMs: number, most: number): Promise<void> {
      await db.execute({
        sql: `delete from schedule_fires where (schedule_id, window_ms) in (
          select schedule_id, window_ms from schedule_fires where fired_ms < ? order by fired_ms limit ?)`,
        args: [beforeMs, most],
      })
    },
  }
}

interface FirstDeps {
  db: Db
  records: Records
  log: Pick<Log, 'error'>
}

/** Of these, the first of each tenant, then the second of each and so on, up to a weight, and always one. */
async function firstOf(
  { db, records, log }: FirstDeps,
  where: string,
  order: string,
  args: InValue[],
): Promise<DueSchedule[]> {
  const found = await db.execute({
    sql: `select *, ${RUNNING} as running from (
      select *, sum(${WEIGHT}) over (order by turn, ${order}, id) - ${WEIGHT} as before from schedules join (
        select rowid as place, row_number() over (partition by tenant_id order by ${order}) as turn
        from schedules as s where ${where} order by turn, ${order} limit ?
      ) on place = schedules.rowid) as s where before <= ${MOST_INPUT} order by turn, ${order}, id`,
    args,
  })
  return standing({ db, log }, rowsOf<StoredSchedule & { running: number }>(found), row => ({
    ...toRow(row, records),
    isRunning: row.running === 1,
  }))
}

/** The schedules that can be read; each other one stands still from now on, and holds up no other. */
async function standing<R extends StoredSchedule, T>(
  { db, log }: Omit<FirstDeps, 'records'>,
  rows: readonly R[],
  read: (row: R) => T,
): Promise<T[]> {
  const damaged: string[] = []
  const all = readRows(rows, read, (error, { id }) => {
    log.error('a schedule stands still', { error, scheduleId: id })
    damaged.push(id)
  })
  if (damaged.length > 0) {
    await db.execute({
      sql: `update schedules set due_ms = null, pending_ms = null, last_error = 'damaged', revision = revision + 1
        where id in (select value from json_each(?))`,
      args: [JSON.stringify(damaged)],
    })
  }
  return all
}

function settingsOf(row: ScheduleRow, zones: Zones, records: Records): InValue[] {
  const { name, agentName, cronExpr, timezone, enabled, overlap, catchUp, catchUpLimit } = row
  const input = row.sealed ? '' : records.seal(row.input, { record: row.id, field: 'input' })
  return [
    ...[name === undefined ? null : JSON.stringify(name), agentName, cronExpr, timezone, zones.of(timezone), input],
    ...sealedColumns(row.sealed),
    ...[enabled ? 1 : 0, overlap, catchUp, catchUpLimit],
  ]
}

function sealedColumns(sealed: SealedInput | undefined): InValue[] {
  return sealed ? [sealed.box, sealed.pool, sealed.hash, sealed.length] : [null, null, null, null]
}

/** For the transaction that fires a schedule: from then on its input is readable in its pool alone. */
export function sealInputOf({ id, revision }: Pick<ScheduleRow, 'id' | 'revision'>, sealed: SealedInput): InStatement {
  return {
    sql: `update schedules set input = '', input_box = ?, input_pool = ?, input_hash = ?, input_length = ?
where id = ? and revision = ?`,
    args: [...sealedColumns(sealed), id, revision],
  }
}

/** For the transaction that deletes an agent: its schedules are switched off (docs/spec/runtime.md §3). */
export function disableSchedules({ tenantId, name }: { tenantId: string; name: string }, nowMs: number): InStatement[] {
  return [
    {
      sql: `update schedule_fires set outcome = 'skipped', reason = 'paused' where outcome = 'queued'
and (schedule_id, window_ms) in (select id, pending_ms from schedules
  where tenant_id = ? and agent_name = ? and pending_ms is not null)`,
      args: [tenantId, name],
    },
    {
      sql: `update schedules set enabled = 0, due_ms = null, pending_ms = null, last_error = 'agent_not_found', updated_ms = ?, revision = revision + 1
where tenant_id = ? and agent_name = ? and enabled = 1`,
      args: [nowMs, tenantId, name],
    },
  ]
}
