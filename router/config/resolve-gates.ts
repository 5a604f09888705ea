import { readJson } from '../../shared/json/read-json.ts'
import { fromUsd } from '../../shared/money/money.ts'
import { type Named, named } from './frozen.ts'
import type { ConsistencyGate, Gate, JudgeGate, SchemaGate } from './gate.ts'
import {
  checkBounds,
  checkFunction,
  checkHttp,
  checkPatterns,
  type GateDeps,
  type InGate,
  reason,
  say,
} from './gate-checks.ts'
import { type GateTable, gateTables, inlineKinds } from './gate-table.ts'
import { readSchema } from './json-schema.ts'
import type { Path } from './locate.ts'
import { isSameModel } from './model.ts'
import { numbered } from './problem.ts'
import { nameOf } from './read-table.ts'
import { type Row, type Rows, uniqueRows } from './schema.ts'

const INLINE_TIMEOUT_MS = 1000
const TIMEOUT_MS = 30_000

export interface Gates {
  usable: Named<Gate>
  /** Every id in the file and the built-in ones. */
  ids: ReadonlySet<string>
}

/** docs/spec/router.md §5.1 and §5.2: what a gate's keys mean together, and whether this host can run it. */
export function resolveGates(rows: Rows<GateTable>, deps: GateDeps): Gates {
  const found = new Map<string, Gate>()
  for (const kind of ['non-empty', 'json-valid'] as const) {
    const gate = resolve({ path: [], given: {}, read: builtin(kind) }, deps)
    if (gate !== undefined) found.set(kind, gate)
  }
  const first = uniqueRows(deps.problems, rows, 'id')
  for (const row of rows) {
    const gate = resolve(row, deps)
    if (gate !== undefined && first.get(gate.id) === row) found.set(gate.id, gate)
  }
  return { usable: named(found), ids: new Set([...found.keys(), ...first.keys()]) }
}

const builtin = (kind: 'non-empty' | 'json-valid') => ({
  value: gateTables[kind].parse({ id: kind, kind }) as GateTable,
  bad: new Set<string>(),
})

function resolve(row: Row<GateTable>, deps: GateDeps): Gate | undefined {
  if (row.read === undefined) return undefined
  const { value: table, bad } = row.read
  const gate = { at: (key: string): Path => [...row.path, key], bad, ...deps }
  const base = baseOf(table)
  switch (table.kind) {
    case 'non-empty': {
      const { accept_tool_calls, refusal, min_chars } = table
      return { ...base, kind: table.kind, acceptToolCalls: accept_tool_calls, refusal, minChars: min_chars }
    }
    case 'json-valid':
      return { ...base, kind: table.kind, fences: table.fences, onToolCall: table.on_tool_call }
    case 'schema':
      return schemaGate(table, base, gate)
    case 'tool-args':
      return {
        ...base,
        kind: table.kind,
        allow: table.allow ?? null,
        deny: table.deny ?? [],
        requireKnown: table.require_known,
      }
    case 'regex':
      checkPatterns(table, gate)
      return {
        ...base,
        kind: table.kind,
        must: table.must,
        mustNot: table.must_not,
        flags: table.flags,
        window: table.window ?? null,
      }
    case 'length':
      checkBounds(table, gate)
      return {
        ...base,
        kind: table.kind,
        minChars: table.min_chars ?? null,
        maxChars: table.max_chars ?? null,
        minTokens: table.min_tokens ?? null,
        maxTokens: table.max_tokens ?? null,
      }
    case 'subprocess':
      if (!deps.host.hasProcesses) say(gate, 'kind', 'this host cannot start processes: use an http gate instead')
      return {
        ...base,
        kind: table.kind,
        cmd: table.cmd,
        cwd: table.cwd ?? null,
        envPass: table.env_pass,
        stdin: table.stdin,
      }
    case 'http':
      checkHttp(table, gate)
      return {
        ...base,
        kind: table.kind,
        url: table.url,
        headersEnv: named(Object.entries(table.headers_env).map(([name, variable]) => [name.toLowerCase(), variable])),
        method: table.method,
      }
    case 'function':
      checkFunction(table, gate)
      return { ...base, kind: table.kind, name: table.name }
    case 'judge':
      return judgeGate(table, base, gate)
    case 'consistency':
      return consistencyGate(table, base, gate)
  }
}

function baseOf(table: GateTable) {
  const { window, min_runs, max_error, probe_after_s, probes } = table.error_budget
  return {
    id: table.id,
    onAbstain: table.on_abstain,
    timeoutMs: table.timeout_ms ?? (inlineKinds.has(table.kind) ? INLINE_TIMEOUT_MS : TIMEOUT_MS),
    cost: fromUsd(table.cost_usd),
    errorBudget: { window, minRuns: min_runs, maxError: max_error, probeAfterS: probe_after_s, probes },
    maxParallel: table.max_parallel,
  }
}

type Base = ReturnType<typeof baseOf>

function schemaGate(table: GateTable<'schema'>, base: Base, gate: InGate): SchemaGate | undefined {
  if (gate.bad.has('schema') || gate.bad.has('file')) return undefined
  if ((table.schema === undefined) === (table.file === undefined)) {
    say(gate, 'schema', 'a schema gate takes "schema" or "file", one of them')
    return undefined
  }
  const key = table.file === undefined ? 'schema' : 'file'
  const given = table.file === undefined ? table.schema : readSchemaFile(table.file, gate)
  if (given === undefined) return undefined
  const read = readSchema(given)
  if ('problems' in read) {
    for (const { path, message } of read.problems) {
      const place = numbered(path)
      const sentence = `${nameOf(gate.at(key))}: ${place === '' ? '' : `${place}: `}${message}`
      gate.problems.atValue(key === 'schema' ? [...gate.at(key), ...path] : gate.at(key), sentence)
    }
    return undefined
  }
  return {
    ...base,
    kind: 'schema',
    schema: read.schema,
    draft: read.draft,
    fences: table.fences,
    onToolCall: table.on_tool_call,
  }
}

function readSchemaFile(file: string, gate: InGate): unknown {
  if (gate.host.readFile === undefined) {
    say(gate, 'file', 'this host cannot read files: write the schema into the config')
    return undefined
  }
  let text: string
  try {
    text = gate.host.readFile(file)
  } catch (error) {
    say(gate, 'file', `cannot read "${file}": ${reason(error)}`)
    return undefined
  }
  try {
    return readJson(text)
  } catch (error) {
    say(gate, 'file', `"${file}" is not JSON: ${reason(error)}`)
    return undefined
  }
}

function judgeGate(table: GateTable<'judge'>, base: Base, gate: InGate): JudgeGate | undefined {
  const unpriced = 'a judge must have a price, add a [[price]] for it'
  const model = gate.models.resolve(table.model, { at: gate.at('model'), unpriced })
  const { fallback_model } = table
  const fallback = fallback_model && gate.models.resolve(fallback_model, { at: gate.at('fallback_model'), unpriced })
  if (model && fallback && isSameModel(model, fallback))
    say(
      gate,
      'fallback_model',
      'expected another model than "model": a fallback stands in where the judge wrote the answer',
    )
  if (model === undefined) return undefined
  return {
    ...base,
    kind: 'judge',
    model,
    rubric: table.rubric,
    threshold: table.threshold,
    includeRequest: table.include_request,
    maxOutputTokens: table.max_output_tokens,
    fallbackModel: fallback || null,
  }
}

function consistencyGate(table: GateTable<'consistency'>, base: Base, gate: InGate): ConsistencyGate {
  const unpriced = 'a model that is sampled must have a price, add a [[price]] for it'
  const use = { at: gate.at('model'), unpriced }
  const model = table.model === undefined ? null : (gate.models.resolve(table.model, use) ?? null)
  return { ...base, kind: 'consistency', k: table.k, threshold: table.threshold, model }
}
