import { readJson } from '../../shared/json/read-json.ts'
import { objectIn, type RowOf, readRow, textIn } from '../../shared/sql/db.ts'
import type { Fire, Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { SealedInput } from '../runs/sealed-input.ts'
import type { scheduleFires, schedules } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import type { Zones } from './zones.ts'

export interface ScheduleRow {
  id: string
  tenantId: string
  name: string | undefined
  agentName: string
  cronExpr: string
  /** Its own; null: the deployment's. */
  timezone: string | null
  /** The canonical text of `config.input`; empty where it is sealed. */
  input: string
  sealed?: SealedInput | undefined
  enabled: boolean
  overlap: Schedule['overlap']
  catchUp: Schedule['catchUp']
  catchUpLimit: number
  dueMs: number | null
  pendingMs: number | null
  lastFiredMs: number | null
  lastRunId: string | undefined
  lastError: string | undefined
  revision: number
  createdMs: number
  updatedMs: number
}

const time = (ms: number) => new Date(ms).toISOString()

export type StoredSchedule = RowOf<typeof schedules>

export function toRow(row: StoredSchedule, records: Records): ScheduleRow {
  return readRow(`schedule ${row.id}`, row, () => {
    const { id } = row
    const sealed = sealedOf(row)
    const input = sealed ? '' : records.open(row.input, { record: id, field: 'input' })
    if (!sealed) objectIn(input)
    return {
      id,
      tenantId: row.tenant_id,
      name: row.name === null ? undefined : textIn(row.name),
      agentName: row.agent_name,
      cronExpr: row.cron_expr,
      timezone: row.timezone,
      input,
      sealed,
      enabled: row.enabled !== 0,
      overlap: row.overlap,
      catchUp: row.catch_up,
      catchUpLimit: row.catch_up_limit,
      dueMs: row.due_ms,
      pendingMs: row.pending_ms,
      lastFiredMs: row.last_fired_ms,
      lastRunId: row.last_run_id ?? undefined,
      lastError: row.last_error ?? undefined,
      revision: row.revision,
      createdMs: row.created_ms,
      updatedMs: row.updated_ms,
    }
  })
}

/** Its four columns are set together. */
function sealedOf({ input_box, input_pool, input_hash, input_length }: StoredSchedule): SealedInput | undefined {
  if (input_box === null) return undefined
  return { pool: input_pool!, box: new Uint8Array(input_box), hash: input_hash!, length: input_length! }
}

export function toSchedule(row: ScheduleRow, zones: Zones): Schedule {
  const { id, tenantId, name, agentName, cronExpr, timezone, enabled, overlap, catchUp, catchUpLimit } = row
  return {
    id,
    tenantId,
    ...(name !== undefined && { name }),
    agentName,
    cronExpr,
    timezone: zones.of(timezone),
    timezoneSource: zones.sourceOf(timezone),
    ...(row.sealed
      ? { config: {}, dataAvailable: false }
      : { config: { input: readJson(row.input) as Schedule['config']['input'] } }),
    enabled,
    overlap,
    catchUp,
    catchUpLimit,
    nextFireAt: row.dueMs === null ? null : time(row.dueMs),
    lastFiredAt: row.lastFiredMs === null ? null : time(row.lastFiredMs),
    ...(row.lastRunId !== undefined && { lastRunId: row.lastRunId }),
    ...(row.lastError !== undefined && { lastError: row.lastError }),
    createdAt: time(row.createdMs),
    updatedAt: time(row.updatedMs),
  }
}

export interface FireRow {
  windowMs: number
  fire: Fire
}

export function toFire(row: RowOf<typeof scheduleFires>): FireRow {
  return readRow(`window ${row.window_ms} of schedule ${row.schedule_id}`, row, () => {
    const windowMs = row.window_ms
    return {
      windowMs,
      fire: {
        windowAt: time(windowMs),
        firedAt: time(row.fired_ms),
        outcome: row.outcome,
        ...(row.run_id !== null && { runId: row.run_id }),
        ...(row.reason !== null && { reason: row.reason }),
      },
    }
  })
}
