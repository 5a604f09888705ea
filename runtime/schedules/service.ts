import type { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { scheduleCreate, scheduleUpdate } from '../../shared/wire/runtime/schedule.ts'
import { notFound } from '../auth/own.ts'
import type { Idempotency } from '../idempotency/binding.ts'
import { canonicalBody } from '../idempotency/canonical-body.ts'
import type { RunService } from '../runs/service.ts'
import { type CronPattern, readCron } from './cron-pattern.ts'
import type { ScheduleRow } from './schedule.ts'
import type { ScheduleStore } from './store.ts'
import { type OffsetAt, zoneOffset } from './zone.ts'
import type { Zones } from './zones.ts'

export interface ScheduleServiceDeps {
  db: Pick<Db, 'write'>
  store: ScheduleStore
  zones: Zones
  runs: Pick<RunService, 'start'>
  agentExists: (tenantId: string, name: string) => Promise<boolean>
  now: () => Date
  newId: () => string
  /** Told when a schedule may have become due sooner. */
  changed: () => void
}

/** Firings bump the revision too: a schedule of every second is changed between two of them. */
const TRIES = 20

export type ScheduleService = ReturnType<typeof scheduleService>

/** Creating and changing schedules. A change of when it fires counts from now on: nothing is caught up. */
export function scheduleService({ db, store, zones, runs, agentExists, now, newId, changed }: ScheduleServiceDeps) {
  async function checkAgent(tenantId: string, name: string): Promise<void> {
    if (!(await agentExists(tenantId, name))) throw notFound('agent', name)
  }

  function nextAfterNow(row: Pick<ScheduleRow, 'cronExpr' | 'timezone'>): number | null {
    return zones.firingsOf(row)(now().getTime()) ?? null
  }

  async function update(id: string, patch: z.output<typeof scheduleUpdate>): Promise<ScheduleRow> {
    for (let tried = 0; tried < TRIES; tried++) {
      const row = await store.get(id)
      if (row === undefined) throw notFound('schedule', id)
      const next = patched(row, patch)
      if (next.agentName !== row.agentName || (next.enabled && !row.enabled)) {
        await checkAgent(row.tenantId, next.agentName)
      }
      readTiming(next.cronExpr, zones.of(next.timezone))
      const retimed = next.enabled !== row.enabled || next.cronExpr !== row.cronExpr || next.timezone !== row.timezone
      if (retimed) next.dueMs = next.enabled ? nextAfterNow(next) : null
      if (!next.enabled) next.pendingMs = null
      next.updatedMs = now().getTime()
      if (!(await store.replace(next))) continue
      changed()
      return next
    }
    throw new ApiError('in_use', `schedule ${id} fires or is changed all the time: try again`)
  }

  return {
    async create(
      tenantId: string,
      given: z.output<typeof scheduleCreate>,
      idempotency: Idempotency | undefined,
    ): Promise<ScheduleRow> {
      const { name, agentName, cronExpr, timezone = null, config, enabled, overlap, catchUp, catchUpLimit } = given
      readTiming(cronExpr, zones.of(timezone))
      const createdMs = now().getTime()
      const row: ScheduleRow = {
        ...{ id: newId(), tenantId, name, agentName, cronExpr, timezone, input: canonicalBody(config.input) },
        ...{ enabled, overlap, catchUp, catchUpLimit, revision: 1, createdMs, updatedMs: createdMs },
        ...{ dueMs: null, pendingMs: null, lastFiredMs: null, lastRunId: undefined, lastError: undefined },
      }
      await checkAgent(tenantId, agentName)
      if (enabled) row.dueMs = nextAfterNow(row)
      await db.write([store.insert(row), ...(idempotency ? [idempotency.statement(row.id)] : [])])
      changed()
      return row
    },

    update,

    /** One run now, outside any window. */
    run: ({ id, tenantId, agentName, input }: ScheduleRow): Promise<Run> =>
      runs.start(tenantId, { agentName, input: JSON.parse(input) as Record<string, unknown> }, () => [], {
        ...{ trigger: { kind: 'schedule', ref: id }, scheduleId: id },
      }),

    /** After the deployment's zone changed: schedules without their own go by the new one. What is due already stays due. */
    async moveByDefault(): Promise<void> {
      for (;;) {
        const moved = await store.movedByDefault(200)
        if (moved.length === 0) return
        for (const row of moved) {
          const ahead = row.dueMs !== null && row.dueMs > now().getTime()
          await store.replace(ahead ? { ...row, dueMs: nextAfterNow(row) } : row)
        }
      }
    },
  }
}

function patched(row: ScheduleRow, patch: z.output<typeof scheduleUpdate>): ScheduleRow {
  const { name, agentName, cronExpr, timezone, config, enabled, overlap, catchUp, catchUpLimit } = patch
  return {
    ...row,
    name: name === undefined ? row.name : (name ?? undefined),
    agentName: agentName ?? row.agentName,
    cronExpr: cronExpr ?? row.cronExpr,
    timezone: timezone === undefined ? row.timezone : timezone,
    input: config === undefined ? row.input : canonicalBody(config.input),
    enabled: enabled ?? row.enabled,
    overlap: overlap ?? row.overlap,
    catchUp: catchUp ?? row.catchUp,
    catchUpLimit: catchUpLimit ?? row.catchUpLimit,
  }
}

/** An expression and a zone that a client gave, or the refusal that names which of them does not fit. */
export function readTiming(cronExpr: string, timezone: string): { pattern: CronPattern; offsetAt: OffsetAt } {
  const pattern = readCron(cronExpr)
  if (typeof pattern === 'string') throw invalid('cronExpr', pattern)
  const offsetAt = zoneOffset(timezone)
  if (offsetAt === undefined) throw invalid('timezone', 'expected an IANA time zone such as Europe/Berlin')
  return { pattern, offsetAt }
}

function invalid(path: string, message: string): ApiError<'validation_failed'> {
  return new ApiError('validation_failed', `${path}: ${message}`, { details: [{ path, message }] })
}
