import { type CommonTable, resolveCommon } from '../gates/common-keys.ts'
import type { GateContext } from '../gates/define-gate.ts'
import {
  type GateConfig,
  type GateConfigs,
  type GateKind,
  type GateTable,
  type GateTables,
  gateKinds,
} from '../gates/gate-kinds.ts'
import { type Named, named } from './frozen.ts'
import type { Path } from './locate.ts'
import type { Problems } from './problem.ts'
import { nameOf } from './read-table.ts'
import type { Models } from './resolve-models.ts'
import { type Row, type Rows, uniqueRows } from './schema.ts'

interface GateDeps {
  problems: Problems
  models: Models
  host: GateContext['host']
}

export interface Gates {
  usable: Named<GateConfig>
  /** Every id in the file and the built-in ones. */
  ids: ReadonlySet<string>
  /** Those in the file. */
  own: ReadonlySet<string>
}

/** docs/spec/router.md §5.1 and §5.2: what a gate's keys mean together, and whether this host can run it. */
export function resolveGates(rows: Rows<GateTable>, deps: GateDeps): Gates {
  const found = new Map<string, GateConfig>()
  for (const { kind, builtIn, read } of Object.values(gateKinds)) {
    if (!builtIn) continue
    const given = { id: kind, kind }
    const gate = resolveRow({ path: [], given, read: read(deps.problems, [], given) }, deps)
    if (gate !== undefined) found.set(kind, gate)
  }
  const first = uniqueRows(deps.problems, rows, 'id')
  for (const row of rows) {
    const gate = resolveRow(row, deps)
    if (gate !== undefined && first.get(gate.id) === row) found.set(gate.id, gate)
  }
  return { usable: named(found), ids: new Set([...found.keys(), ...first.keys()]), own: new Set(first.keys()) }
}

function resolveRow({ path, read }: Row<GateTable>, deps: GateDeps): GateConfig | undefined {
  if (read === undefined) return undefined
  return resolveTable(read.value.kind, read.value, contextOf(path, read.bad, deps))
}

function resolveTable<K extends GateKind>(
  kind: K,
  table: GateTables[K] & CommonTable,
  context: GateContext,
): GateConfigs[K] | undefined {
  const { slow, resolve } = gateKinds[kind]
  return resolve(table, resolveCommon(table, slow), context)
}

function contextOf(row: Path, bad: ReadonlySet<string>, { problems, models, host }: GateDeps): GateContext {
  const at = (...path: Path): Path => [...row, ...path]
  return {
    host,
    bad,
    problems,
    at,
    report: (path, message) => problems.atValue(at(...path), `${nameOf(at(...path))}: ${message}`),
    model: (key, ref, unpriced) => models.resolve(ref, { at: at(key), unpriced }),
  }
}
