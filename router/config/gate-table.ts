import { z } from 'zod'
import { expected, text } from '../../shared/wire/bounds.ts'
import { choice, decimal, envName, flag, id, modelRef, uniqueList, usdFee, variable, whole } from './table-fields.ts'

/** docs/spec/router.md §5.1. The `_` spelling of the two values is taken as well. */
const onAbstain = z
  .string({ error: expected('"fail-open" or "fail-closed"') })
  .transform(value => value.replaceAll('_', '-'))
  .pipe(choice(['fail-open', 'fail-closed']))

const errorBudget = z.strictObject(
  {
    window: whole(1, 100_000).default(50),
    min_runs: whole(1, 100_000).default(20),
    max_error: decimal(0, 1).default(0.25),
    probe_after_s: whole(1, 86_400).default(60),
    probes: whole(1, 1000).default(3),
  },
  { error: expected('a table') },
)

const common = {
  id,
  on_abstain: onAbstain.default('fail-open'),
  timeout_ms: whole(10, 600_000).optional(),
  cost_usd: usdFee.default(0),
  error_budget: errorBudget.prefault({}),
  max_parallel: whole(1, 256).default(8),
}

const onToolCall = choice(['pass', 'fail', 'abstain']).default('pass')
const count = whole(0, 100_000_000)
const patterns = z.array(text(1, 10_000), { error: expected('an array of patterns') })

const gate = <const K extends string, S extends z.core.$ZodLooseShape>(kind: K, keys: S) =>
  z.strictObject({ ...common, kind: z.literal(kind), ...keys })

/** docs/spec/router.md §5.2: the keys of each kind. */
export const gateTables = {
  'non-empty': gate('non-empty', {
    accept_tool_calls: flag.default(true),
    refusal: choice(['fail', 'pass', 'abstain']).default('fail'),
    min_chars: whole(1, 100_000_000).default(1),
  }),
  'json-valid': gate('json-valid', { fences: flag.default(true), on_tool_call: onToolCall }),
  schema: gate('schema', {
    schema: z.unknown().optional(),
    file: text(1, 4096).optional(),
    fences: flag.default(true),
    on_tool_call: onToolCall,
  }),
  'tool-args': gate('tool-args', {
    allow: uniqueList(text(1, 256)).optional(),
    deny: uniqueList(text(1, 256)).optional(),
    require_known: flag.default(true),
  }),
  regex: gate('regex', {
    must: patterns.default([]),
    must_not: patterns.default([]),
    flags: text(0, 8).default('u'),
    window: whole(1, 100_000_000).optional(),
  }),
  length: gate('length', {
    min_chars: count.optional(),
    max_chars: count.optional(),
    min_tokens: count.optional(),
    max_tokens: count.optional(),
  }),
  subprocess: gate('subprocess', {
    cmd: z.array(text(1, 32_768), { error: expected('an array of strings, the program first') }).min(1),
    cwd: text(1, 4096).optional(),
    env_pass: uniqueList(variable).default([]),
    stdin: choice(['json', 'text']).default('json'),
  }),
  http: gate('http', {
    url: text(1, 2048),
    headers_env: z
      .record(text(1, 256), envName, { error: expected('a table of header names and variable names') })
      .default({}),
    method: choice(['POST', 'PUT']).default('POST'),
  }),
  function: gate('function', { name: text(1, 128) }),
  judge: gate('judge', {
    model: modelRef,
    rubric: text(1, 20_000),
    threshold: decimal(0, 1).default(0.7),
    include_request: flag.default(true),
    max_output_tokens: whole(16, 32_768).default(512),
    fallback_model: modelRef.optional(),
  }),
  consistency: gate('consistency', {
    k: whole(2, 8).default(3),
    threshold: decimal(0, 1).default(0.6),
    model: modelRef.optional(),
  }),
} as const

export type GateKind = keyof typeof gateTables
export type GateTable<K extends GateKind = GateKind> = z.output<(typeof gateTables)[K]>

export const gateKinds = Object.keys(gateTables) as GateKind[]

/** Kinds that run inside the request and need no more than a second. */
export const inlineKinds: ReadonlySet<GateKind> = new Set([
  'non-empty',
  'json-valid',
  'schema',
  'tool-args',
  'regex',
  'length',
])
