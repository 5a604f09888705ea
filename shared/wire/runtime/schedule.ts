import { z } from 'zod'
import { type Alias, flag, fromText, query, withAliases } from '../aliases.ts'
import { count, displayName, freeForm, int, text } from '../bounds.ts'
import { acceptsRecord } from '../read-only.ts'
import { named } from '../schema-names.ts'
import { agentName, agentNameAlias, filter, id, listAliases, moment, page, timestamp } from './conventions.ts'

const overlap = z.enum(['allow', 'skip', 'queue'])
const catchUp = z.enum(['one', 'none', 'all'])

export const schedule = named(
  'Schedule',
  z.object({
    id,
    tenantId: z.string(),
    name: z.string().optional(),
    agentName,
    cronExpr: z.string(),
    /** The one in effect. */
    timezone: z.string(),
    timezoneSource: z.enum(['schedule', 'deployment', 'utc']),
    /** Without `input` where it is sealed to a pool of nodes. */
    config: z.object({ input: freeForm.optional() }),
    /** False where the input is sealed to a pool of nodes: it cannot be read here, and a change that leaves it out keeps it. */
    dataAvailable: z.boolean().optional(),
    enabled: z.boolean(),
    overlap,
    catchUp,
    catchUpLimit: count,
    nextFireAt: timestamp.nullable(),
    lastFiredAt: timestamp.nullable(),
    lastRunId: id.optional(),
    lastError: z.string().optional(),
    createdAt: timestamp,
    updatedAt: timestamp,
  }),
)
export type Schedule = z.infer<typeof schedule>

// Whether the expression fires and the zone exists needs the cron library, so the route says that; here only the form.
const cronExpr = text(1, 256)
const timezone = text(1, 64)
const config = z.strictObject({ input: freeForm.default({}) })

const createFields = named(
  'ScheduleCreate',
  z.strictObject({
    agentName,
    cronExpr,
    timezone: timezone.nullable().optional(),
    config: config.prefault({}),
    enabled: z.boolean().default(true),
    overlap: overlap.default('allow'),
    catchUp: catchUp.default('one'),
    catchUpLimit: int(1, 100).default(10),
    name: displayName(256).optional(),
  }),
)

const updateFields = named(
  'ScheduleUpdate',
  z.strictObject({
    agentName: agentName.optional(),
    cronExpr: cronExpr.optional(),
    /** `null` returns to the default zone. */
    timezone: timezone.nullable().optional(),
    /** Without `input`: it stays. */
    config: z.strictObject({ input: freeForm.optional() }).optional(),
    enabled: z.boolean().optional(),
    overlap: overlap.optional(),
    catchUp: catchUp.optional(),
    catchUpLimit: int(1, 100).optional(),
    name: displayName(256).nullable().optional(),
  }),
)

function readTemplate(value: unknown): { value: unknown } | string {
  let read = value
  if (typeof value === 'string') {
    try {
      read = JSON.parse(value)
    } catch {
      return 'expected an object or JSON text of one'
    }
  }
  return typeof read === 'object' && read !== null && !Array.isArray(read)
    ? { value: read }
    : 'expected an object or JSON text of one'
}

export const scheduleAliases: readonly Alias[] = [
  agentNameAlias,
  { from: 'inputTemplate', to: 'config.input', read: readTemplate },
]

export const scheduleCreate = withAliases(createFields, scheduleAliases)
export type ScheduleCreate = z.input<typeof createFields>
export const scheduleUpdate = acceptsRecord(withAliases(updateFields, scheduleAliases), updateFields.shape, schedule, [
  'dataAvailable',
  'nextFireAt',
  'lastFiredAt',
  'lastRunId',
  'lastError',
])
export type ScheduleUpdate = z.input<typeof updateFields>

export const scheduleListQuery = query({ ...page, agentName: filter, enabled: flag.optional() }, listAliases)

export const fire = named(
  'ScheduleFire',
  z.object({
    windowAt: timestamp,
    firedAt: timestamp,
    outcome: z.enum(['started', 'skipped', 'queued', 'refused']),
    runId: id.optional(),
    reason: z.string().optional(),
  }),
)
export type Fire = z.infer<typeof fire>

export const previewQuery = query({
  cronExpr,
  timezone: timezone.optional(),
  count: fromText(int(1, 50).default(5)),
  from: moment.optional(),
})

export const previewItem = named(
  'SchedulePreview',
  z.object({
    at: timestamp,
    /** Wall-clock time in the zone. */
    local: z.string(),
    /** `+02:00` */
    offset: z.string(),
  }),
)
export type PreviewItem = z.infer<typeof previewItem>
