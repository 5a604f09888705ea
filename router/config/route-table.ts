import { z } from 'zod'
import { expected, text } from '../../shared/wire/bounds.ts'
import { modes, profiles } from '../../shared/wire/router/conventions.ts'
import { modeValues } from '../../shared/wire/router/headers.ts'
import { budgetTable } from './budget-table.ts'
import { choice, decimal, flag, strings, uniqueList, whole } from './table-fields.ts'

const MAX_BODY = Number.MAX_SAFE_INTEGER

const glob = text(1, 256)

/** One pattern or several, any of which may hold. */
const globs = z.union([glob, z.array(glob).min(1)], {
  error: expected('a string or an array of strings, each of 1 to 256 characters'),
})

/** docs/spec/router.md §6.2: every key that is present must hold. */
const matchTable = z.strictObject(
  {
    agent: globs.optional(),
    subagent: globs.optional(),
    model: globs.optional(),
    api: globs.optional(),
    tenant: globs.optional(),
    task: globs.optional(),
    language: globs.optional(),
    has_tools: flag.optional(),
    has_images: flag.optional(),
    stream: flag.optional(),
    min_body_bytes: whole(0, MAX_BODY).optional(),
    max_body_bytes: whole(0, MAX_BODY).optional(),
    header: z.record(text(1, 256), glob, { error: expected('a table of header names and patterns') }).optional(),
  },
  { error: expected('a table') },
)
export type MatchTable = z.output<typeof matchTable>

export const globKeys = ['agent', 'subagent', 'model', 'api', 'tenant', 'task', 'language'] as const

/** What `[defaults]` may hold: every route key but `match` and `ladder`. */
export const defaultsTable = z.strictObject({
  mode: choice(modes).optional(),
  gates: strings.optional(),
  profile: choice(profiles).optional(),
  start_rung: whole(0, 15).optional(),
  min_rung_tools: whole(0, 15).optional(),
  min_rung_images: whole(0, 15).optional(),
  model_hint: choice(['ignore', 'start', 'pin']).optional(),
  strong_rung: whole(0, 15).optional(),
  serve_threshold: decimal(0, 1).optional(),
  serve_failed_above_threshold: flag.optional(),
  max_escalations: whole(0, 15).optional(),
  max_attempts: whole(1, 32).optional(),
  on_exhausted: choice(['serve_best', 'error']).optional(),
  /** Gates whose refused answers are never served, not even as the best attempt; `true` for all of the route. */
  must_pass: z.union([z.boolean(), strings], { error: expected('true, false or an array of gates') }).optional(),
  thinking_policy: choice(['floor', 'pin', 'strip']).optional(),
  sticky_ttl_s: whole(0, 86_400).optional(),
  stay_for_cache: flag.optional(),
  early_release: flag.optional(),
  keepalive: choice(['auto', 'off']).optional(),
  header_modes: uniqueList(choice(modeValues)).optional(),
  json_by_gate: flag.optional(),
  adapt: flag.optional(),
  translate: choice(['adapt', 'strict']).optional(),
  score: choice(['min', 'mean']).optional(),
  shadow_rate: decimal(0, 1).optional(),
  cache_ttl_s: whole(0, 86_400).optional(),
  budget: budgetTable.optional(),
})
export type DefaultsTable = z.output<typeof defaultsTable>

export const routeTable = defaultsTable.extend({
  match: matchTable.optional(),
  ladder: strings.optional(),
})
export type RouteTable = z.output<typeof routeTable>
