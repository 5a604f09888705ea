import type { z } from 'zod'
import { ApiError, invalidMember } from '../../shared/http/api-error.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { scheduleCreate, scheduleUpdate } from '../../shared/wire/runtime/schedule.ts'
import { canonicalBody, type Idempotency } from '../http/idempotent.ts'
import { notFound } from '../http/own-tenant.ts'
import { redactedInput } from '../privacy/redaction.ts'
import type { SealedInput, SealInput } from '../runs/sealed-input.ts'
import type { RunService } from '../runs/service.ts'
import { type CronPattern, readCron } from './cron-pattern.ts'
import type { ScheduledAgent } from './fire-windows.ts'
import type { ScheduleRow } from './schedule.ts'
import type { ScheduleStore } from './store.ts'
import { type OffsetAt, zoneOffset } from './zone.ts'
import type { Zones } from './zones.ts'

export interface ScheduleServiceDeps {
  db: Pick<Db, 'write'>
  store: ScheduleStore
  zones: Zones
  runs: Pick<RunService, 'start'>
  findAgent: (tenantId: string, name: string) => Promise<ScheduledAgent | undefined>
  sealInput: SealInput
  now: () => Date
  newId: () => string
  /** Told when a schedule may have become due sooner. */
  changed: () => void
}

/** Firings bump the revision too: a schedule of every second is changed between two of them. */
const TRIES = 20

export type ScheduleService = ReturnType<typeof scheduleService>

/** Creating and changing schedules. A change of when it fires counts from now on: nothing is caught up. */
export function scheduleService(deps: ScheduleServiceDeps) {
  const { db, store, zones, runs, now, newId, changed } = deps

  return {
    async create(
      tenantId: string,
      given: z.output<typeof scheduleCreate>,
      idempotency: Idempotency,
    ): Promise<ScheduleRow> {
      const { name, agentName, cronExpr, timezone = null, config, enabled, overlap, catchUp, catchUpLimit } = given
      readTiming(cronExpr, zones.of(timezone))
      const createdMs = now().getTime()
      const row: ScheduleRow = {
        id: newId(),
        tenantId,
        name,
        agentName,
        cronExpr,
        timezone,
        input: canonicalBody(config.input),
        enabled,
        overlap,
        catchUp,
        catchUpLimit,
        revision: 1,
        createdMs,
        updatedMs: createdMs,
        dueMs: null,
        pendingMs: null,
        lastFiredMs: null,
        lastRunId: undefined,
        lastError: undefined,
      }
      const agent = await agentOf(deps, tenantId, agentName)
      if (enabled) row.dueMs = nextAfterNow(deps, row)
      const made = await withoutText(deps, row, agent)
      await db.write([store.insert(made), ...idempotency.bind(row.id)])
      changed()
      return made
    },

    update: (id: string, patch: z.output<typeof scheduleUpdate>) => updateSchedule(deps, id, patch),

    /** One run now, outside any window. */
    run({ id, tenantId, agentName, input, sealed }: ScheduleRow): Promise<Run> {
      const given = sealed ? {} : (readJson(input) as Record<string, unknown>)
      return runs.start(tenantId, { agentName, input: given }, () => [], {
        trigger: { kind: 'schedule', ref: id },
        scheduleId: id,
        sealedInput: sealed,
      })
    },

    /** After the clock was set back: windows that it was ahead of have their rows, so that none is fired twice. */
    async moveByClock(): Promise<void> {
      for (let afterId = ''; ; ) {
        const ahead = await store.timedAhead(now().getTime(), afterId, 200)
        for (const row of ahead) {
          const dueMs = nextAfterNow(deps, row)
          if (dueMs !== row.dueMs) await store.replace({ ...row, dueMs })
        }
        const last = ahead.at(-1)
        if (last === undefined) return
        afterId = last.id
      }
    },

    /** After the deployment's zone changed: schedules without their own go by the new one. What is due already stays due. */
    async moveByDefault(): Promise<void> {
      for (;;) {
        const moved = await store.movedByDefault(200)
        if (moved.length === 0) return
        for (const row of moved) {
          const ahead = row.dueMs !== null && row.dueMs > now().getTime()
          await store.replace(ahead ? { ...row, dueMs: nextAfterNow(deps, row) } : row)
        }
      }
    },
  }
}

async function agentOf(deps: ScheduleServiceDeps, tenantId: string, name: string): Promise<ScheduledAgent> {
  const agent = await deps.findAgent(tenantId, name)
  if (agent === undefined) throw notFound('agent', name)
  return agent
}

/** The row as it may stand here: without an input that only a pool of nodes may read. */
async function withoutText(
  deps: ScheduleServiceDeps,
  row: ScheduleRow,
  { manifest, sealed: prompt }: ScheduledAgent,
): Promise<ScheduleRow> {
  const { id, tenantId, agentName } = row
  const sealed = await deps.sealInput({ tenantId, agentName, sealed: prompt }, id, redactedInput(manifest, row.input))
  return sealed ? { ...row, input: '', sealed } : row
}

function nextAfterNow(deps: ScheduleServiceDeps, row: Pick<ScheduleRow, 'cronExpr' | 'timezone'>): number | null {
  return deps.zones.firingsOf(row)(deps.now().getTime()) ?? null
}

async function updateSchedule(
  deps: ScheduleServiceDeps,
  id: string,
  patch: z.output<typeof scheduleUpdate>,
): Promise<ScheduleRow> {
  for (let tried = 0; tried < TRIES; tried++) {
    const row = await deps.store.get(id)
    if (row === undefined) throw notFound('schedule', id)
    let next = patched(row, patch)
    const otherAgent = next.agentName !== row.agentName
    if (otherAgent && next.sealed) throw sealedFor(row, next.sealed)
    const mustBe = otherAgent || (next.enabled && !row.enabled)
    const agent = mustBe
      ? await agentOf(deps, row.tenantId, next.agentName)
      : next.sealed === undefined && (await deps.findAgent(row.tenantId, next.agentName))
    readTiming(next.cronExpr, deps.zones.of(next.timezone))
    const retimed = next.enabled !== row.enabled || next.cronExpr !== row.cronExpr || next.timezone !== row.timezone
    if (retimed) next.dueMs = next.enabled ? nextAfterNow(deps, next) : null
    if (!next.enabled) next.pendingMs = null
    if (agent && next.sealed === undefined) next = await withoutText(deps, next, agent)
    next.updatedMs = deps.now().getTime()
    if (!(await deps.store.replace(next))) continue
    deps.changed()
    return next
  }
  throw new ApiError('in_use', `schedule ${id} was changed meanwhile: try again`)
}

function patched(row: ScheduleRow, patch: z.output<typeof scheduleUpdate>): ScheduleRow {
  const { name, agentName, cronExpr, timezone, config, enabled, overlap, catchUp, catchUpLimit } = patch
  const given = config?.input
  return {
    ...row,
    name: name === undefined ? row.name : (name ?? undefined),
    agentName: agentName ?? row.agentName,
    cronExpr: cronExpr ?? row.cronExpr,
    timezone: timezone === undefined ? row.timezone : timezone,
    ...(given !== undefined && { input: canonicalBody(given), sealed: undefined }),
    enabled: enabled ?? row.enabled,
    overlap: overlap ?? row.overlap,
    catchUp: catchUp ?? row.catchUp,
    catchUpLimit: catchUpLimit ?? row.catchUpLimit,
  }
}

function sealedFor({ agentName }: ScheduleRow, { pool }: SealedInput): ApiError<'validation_failed'> {
  return invalidMember(
    'config.input',
    `the input is sealed for agent ${agentName} in pool ${pool} and cannot be read here: to change the agent, send config.input as well`,
  )
}

/** An expression and a zone that a client gave, or the refusal that names which of them does not fit. */
export function readTiming(cronExpr: string, timezone: string): { pattern: CronPattern; offsetAt: OffsetAt } {
  const pattern = readCron(cronExpr)
  if (typeof pattern === 'string') throw invalidMember('cronExpr', pattern)
  const offsetAt = zoneOffset(timezone)
  if (offsetAt === undefined) throw invalidMember('timezone', 'expected an IANA time zone such as Europe/Berlin')
  return { pattern, offsetAt }
}
