import { openDb } from '../../../shared/host/open-libsql.ts'
import { uuidsBy, uuidv7 } from '../../../shared/ids/uuid-v7.ts'
import { silentLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import { manualClock } from '../../../shared/time/testing/manual-clock.ts'
import { manifest } from '../../../shared/wire/runtime/manifest.ts'
import { runStore } from '../../runs/store.ts'
import { runtimeSteps } from '../../schema/steps.ts'
import type { scheduleFires } from '../../schema/tables.ts'
import { clearRecords } from '../../vault/records.ts'
import { type WindowFirerDeps, windowFirer } from '../fire-windows.ts'
import { type ScheduleRow, type StoredSchedule, toRow } from '../schedule.ts'
import { scheduleStore } from '../store.ts'
import { scheduleZones } from '../zones.ts'

export const START = new Date('2026-01-02T03:04:00.000Z')

export interface FixtureOptions extends Partial<Pick<WindowFirerDeps, 'findAgent' | 'admits' | 'refused'>> {
  db?: Db
  clock?: Clock & { advance(ms: number): void }
  defaultZone?: string
}

/** What fires schedules, on a real database, with a clock that stands still and no engine: runs stay as they were made. */
export async function scheduleFixture({
  db: given,
  clock = manualClock(START),
  defaultZone,
  ...rest
}: FixtureOptions = {}) {
  const db = given ?? (await openDb(':memory:'))
  await migrate(db, 'runtime', runtimeSteps)
  const zones = scheduleZones(defaultZone)
  const store = scheduleStore(db, clearRecords, zones, silentLog())
  const runs = runStore(db, clearRecords)
  const metrics = createMetrics()
  const fire = windowFirer({
    store,
    runs,
    zones,
    now: clock.now,
    newId: uuidsBy(clock),
    admits: async () => ({ statements: [], exceeded: false }),
    dayOf: ms => new Date(ms).toISOString().slice(0, 10),
    refused: () => [],
    log: silentLog(),
    sealInput: async () => undefined,
    findAgent: async () => ({ agentId: 'agent', versionId: 'version', manifest: manifest.parse({}) }),
    fires: metrics.counter('fires', 'f'),
    lagSeconds: metrics.histogram('lag', 'l'),
    ...rest,
  })
  return {
    db,
    clock,
    store,
    runs,
    zones,
    fire,
    metrics,
    /** A schedule whose next window is the first after now. */
    async add(cronExpr: string, more: Partial<ScheduleRow> = {}): Promise<string> {
      const nowMs = clock.now().getTime()
      const row: ScheduleRow = {
        id: uuidv7(nowMs),
        tenantId: 'default',
        name: undefined,
        agentName: 'clerk',
        cronExpr,
        timezone: null,
        input: '{"n":1}',
        enabled: true,
        overlap: 'allow',
        catchUp: 'one',
        catchUpLimit: 10,
        dueMs: null,
        pendingMs: null,
        lastFiredMs: null,
        lastRunId: undefined,
        lastError: undefined,
        revision: 1,
        createdMs: nowMs,
        updatedMs: nowMs,
        ...more,
      }
      await db.write([store.insert({ ...row, dueMs: zones.firingsOf(row)(nowMs) ?? null })])
      return row.id
    },
    /** Every window with a row, oldest first: time of day, outcome and reason. */
    async fates(scheduleId: string): Promise<string[]> {
      const found = await db.execute({
        sql: 'select window_ms, outcome, reason from schedule_fires where schedule_id = ? order by window_ms',
        args: [scheduleId],
      })
      return rowsOf<Pick<RowOf<typeof scheduleFires>, 'window_ms' | 'outcome' | 'reason'>>(found).map(
        ({ window_ms, outcome, reason }) =>
          [new Date(window_ms).toISOString().slice(11, 19), outcome, ...(reason ? [reason] : [])].join(' '),
      )
    },
    async read(scheduleId: string): Promise<ScheduleRow> {
      const found = await db.execute({ sql: 'select * from schedules where id = ?', args: [scheduleId] })
      const rows = rowsOf<StoredSchedule>(found)
      return toRow(rows[0]!, clearRecords)
    },
    runsOf: (scheduleId: string) => runs.list('default', { limit: 200, scheduleId }, { limit: 200, after: undefined }),
    /** Ends every run that is open. */
    endRuns: () => db.execute("update runs set status = 'succeeded' where status = 'queued'"),
    async close() {
      await runs.close()
      if (given === undefined) db.close()
    },
  }
}
