import type { Row } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import type { Fire, Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { SealedInput } from '../runs/sealed-input.ts'
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
const numberOr = <T>(value: unknown, none: T) => (value === null || value === undefined ? none : Number(value))
const textOr = <T>(value: unknown, none: T) => (value === null || value === undefined ? none : String(value))

export function toRow(row: Row, records: Records): ScheduleRow {
  const id = String(row.id)
  const sealed = sealedOf(row)
  return {
    id,
    tenantId: String(row.tenant_id),
    name: row.name === null ? undefined : (readJson(String(row.name)) as string),
    agentName: String(row.agent_name),
    cronExpr: String(row.cron_expr),
    timezone: textOr(row.timezone, null),
    input: sealed ? '' : records.open(String(row.input), { record: id, field: 'input' }),
    sealed,
    enabled: Number(row.enabled) === 1,
    overlap: String(row.overlap) as Schedule['overlap'],
    catchUp: String(row.catch_up) as Schedule['catchUp'],
    catchUpLimit: Number(row.catch_up_limit),
    dueMs: numberOr(row.due_ms, null),
    pendingMs: numberOr(row.pending_ms, null),
    lastFiredMs: numberOr(row.last_fired_ms, null),
    lastRunId: textOr(row.last_run_id, undefined),
    lastError: textOr(row.last_error, undefined),
    revision: Number(row.revision),
    createdMs: Number(row.created_ms),
    updatedMs: Number(row.updated_ms),
  }
}

function sealedOf(row: Row): SealedInput | undefined {
  if (row.input_box === null) return undefined
  return {
    pool: String(row.input_pool),
    box: new Uint8Array(row.input_box as ArrayBuffer),
    hash: String(row.input_hash),
    length: Number(row.input_length),
  }
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

export function toFire(row: Row): FireRow {
  const windowMs = Number(row.window_ms)
  return {
    windowMs,
    fire: {
      windowAt: time(windowMs),
      firedAt: time(Number(row.fired_ms)),
      outcome: String(row.outcome) as Fire['outcome'],
      ...(row.run_id !== null && { runId: String(row.run_id) }),
      ...(row.reason !== null && { reason: String(row.reason) }),
    },
  }
}
