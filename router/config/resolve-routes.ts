import { canonicalize } from '../../shared/sign/jcs.ts'
import { inboundApis, type Mode } from '../../shared/wire/router/conventions.ts'
import { modeValues } from '../../shared/wire/router/headers.ts'
import { type GateConfigs, type GateKind, gateKinds } from '../gates/gate-kinds.ts'
import { globMatches } from '../policy/match-route.ts'
import { evidenceFingerprint, routeFingerprint } from './fingerprint.ts'
import { named } from './frozen.ts'
import { isCredentialHeader, isHeaderName } from './header-names.ts'
import type { Path } from './locate.ts'
import { type Problems, tableName } from './problem.ts'
import { nameOf, type Read } from './read-table.ts'
import { combineBudgets } from './resolve-budget.ts'
import type { Gates } from './resolve-gates.ts'
import type { Models } from './resolve-models.ts'
import type { Providers } from './resolve-providers.ts'
import { type DefaultsTable, globKeys, type MatchTable, type RouteTable } from './route-table.ts'
import type { Budget, Route, RouteMatch, Rung } from './routing-config.ts'
import type { Row, Rows } from './schema.ts'
import { suggestion } from './suggestion.ts'
import { MODEL_REF } from './table-fields.ts'

const MAX_RUNGS = 16

interface Deps {
  problems: Problems
  providers: Providers
  models: Models
  gates: Gates
  defaults: Read<DefaultsTable>
  budget: Budget
  /** ROUTER_MODE, for routes that name none. */
  mode: Mode
}

interface InRoute extends Deps {
  path: Path
  table: RouteTable
  bad: ReadonlySet<string>
  /** The route's keys over those of `[defaults]`. */
  keys: RouteTable
  /** Where a key that counts here is written. */
  at: (key: keyof RouteTable) => Path
}

/** docs/spec/router.md §6.2 and §6.9: each route with its defaults, and what routes may not do to each other. */
export function resolveRoutes(rows: Rows<RouteTable>, deps: Deps): Route[] {
  const routes = rows.flatMap((row, ix) => {
    const route = resolveRoute(row, ix, deps)
    return route === undefined ? [] : [{ route, path: row.path, bad: row.read?.bad.has('match') === true }]
  })
  routes.forEach(({ route, path, bad }, i) => {
    if (bad) return
    const before = routes.slice(0, i).find(other => !other.bad && hides(other.route.match, route.match))
    if (before === undefined) return
    const why = isEmpty(before.route.match) ? 'matches everything' : 'has the same match'
    deps.problems.atValue(
      path,
      `${tableName(path)} can never match: ${tableName(before.path)}${deps.problems.lineOf(before.path)} before it ${why}`,
    )
  })
  // Also where every route names gates of its own: the next one that does not would be refused for it.
  for (const [i, id] of (deps.defaults.value.gates ?? []).entries()) checkKnown(deps, ['defaults', 'gates', i], id)
  return routes.map(({ route }) => route)
}

const isEmpty = (match: RouteMatch) => Object.keys(match).length === 0
const hides = (before: RouteMatch, after: RouteMatch) => isEmpty(before) || sameMatch(before, after)

function resolveRoute(row: Row<RouteTable>, ix: number, deps: Deps): Route | undefined {
  if (row.read === undefined) return undefined
  const { value: table, bad } = row.read
  const keys: RouteTable = { ...deps.defaults.value, ...table }
  const at = (key: keyof RouteTable): Path =>
    table[key] !== undefined || deps.defaults.value[key as keyof DefaultsTable] === undefined
      ? [...row.path, key]
      : ['defaults', key]
  const route: InRoute = { ...deps, path: row.path, table, bad, keys, at }

  const mode = keys.mode ?? deps.mode
  const headerModes = [...(keys.header_modes ?? modeValues)]
  checkMatch(deps.problems, [...row.path, 'match'], table.match ?? {})
  const ladder = resolveLadder(route, mode === 'enforce' || headerModes.some(value => value !== 'observe'))
  if (mode === 'enforce' && (keys.ladder ?? []).length === 0 && !bad.has('ladder')) needLadder(route)
  const gates = keys.gates ?? []
  checkGates(route, gates, ladder)
  checkRungs(route)
  const mustPass = resolveMustPass(route, gates)

  const top = Math.max(0, (keys.ladder ?? []).length - 1)
  const match = resolveMatch(table.match ?? {})
  const fingerprint = routeFingerprint(match, keys.ladder ?? [], gates)
  const set = gates.flatMap(id => (deps.gates.own.has(id) ? (deps.gates.usable[id] ?? []) : []))
  const evidence = evidenceFingerprint(fingerprint, set, ladder, deps.providers.usable)
  return {
    ix,
    match,
    mode,
    profile: keys.profile ?? 'balanced',
    ladder,
    gates,
    startRung: keys.start_rung ?? 0,
    minRungTools: keys.min_rung_tools ?? 0,
    minRungImages: keys.min_rung_images ?? 0,
    modelHint: keys.model_hint ?? 'ignore',
    strongRung: keys.strong_rung ?? top,
    serveThreshold: keys.serve_threshold ?? null,
    serveFailedAboveThreshold: keys.serve_failed_above_threshold ?? false,
    maxEscalations: keys.max_escalations ?? top,
    maxAttempts: keys.max_attempts ?? 6,
    onExhausted: keys.on_exhausted ?? 'serve_best',
    ...(mustPass.length > 0 && { mustPass }),
    thinkingPolicy: keys.thinking_policy ?? 'floor',
    stickyTtlS: keys.sticky_ttl_s ?? 0,
    stayForCache: keys.stay_for_cache ?? true,
    earlyRelease: keys.early_release ?? false,
    keepalive: keys.keepalive ?? 'auto',
    headerModes,
    jsonByGate: keys.json_by_gate ?? false,
    adapt: keys.adapt ?? true,
    translate: keys.translate ?? 'adapt',
    score: keys.score ?? 'min',
    shadowRate: keys.shadow_rate ?? 0,
    cacheTtlS: keys.cache_ttl_s ?? 0,
    budget: combineBudgets(keys.budget ?? {}, deps.budget),
    fingerprint,
    ...(evidence !== undefined && { evidence }),
  }
}

const repeated = (list: readonly string[], i: number) =>
  list.indexOf(list[i]!) === i ? undefined : `"${list[i]}" is listed twice`

function resolveLadder({ problems, models, keys, path }: InRoute, enforceable: boolean): Rung[] {
  const unpriced = enforceable ? models.unpriced : undefined
  const refs = keys.ladder ?? []
  const whole = [...path, 'ladder']
  if (refs.length > MAX_RUNGS)
    problems.atValue(whole, `${nameOf(whole)}: expected at most ${MAX_RUNGS} rungs, got ${refs.length}`)
  return refs.flatMap((ref, i) => {
    const at = [...whole, i]
    const wrong = MODEL_REF.test(ref) ? repeated(refs, i) : 'expected "provider/model"'
    if (wrong !== undefined) {
      problems.atValue(at, `${nameOf(at)}: ${wrong}`)
      return []
    }
    const model = models.resolve(ref, { at, unpriced })
    return model === undefined ? [] : [{ rung: i, ...model }]
  })
}

function needLadder({ problems, keys, path, at, bad }: InRoute): void {
  if (bad.has('mode')) return
  if (keys.mode !== undefined) problems.atValue(at('mode'), `${tableName(path)}: mode "enforce" needs a ladder`)
  else problems.atValue(path, `${tableName(path)} needs a ladder or mode = "observe": ROUTER_MODE is enforce`)
}

function checkGates({ problems, gates, at }: InRoute, ids: readonly string[], ladder: readonly Rung[]): void {
  ids.forEach((id, i) => {
    const where = [...at('gates'), i]
    if (!checkKnown({ problems, gates }, where, id)) return
    const again = repeated(ids, i)
    if (again !== undefined) {
      problems.atValue(where, `${nameOf(where)}: ${again}`)
      return
    }
    const gate = gates.usable[id]
    const refused = gate && refuseRoute(gate.kind, gate, ladder)
    if (refused !== undefined) problems.atValue(where, `${nameOf(where)}: ${refused}`)
  })
}

function checkKnown({ problems, gates }: Pick<Deps, 'problems' | 'gates'>, where: Path, id: string): boolean {
  if (gates.ids.has(id)) return true
  problems.atValue(where, `${nameOf(where)}: unknown gate "${id}"${suggestion(id, gates.ids)}`)
  return false
}

const refuseRoute = <K extends GateKind>(kind: K, gate: GateConfigs[K], ladder: readonly Rung[]) =>
  gateKinds[kind].refuseRoute(gate, ladder)

function resolveMustPass({ problems, keys, at }: InRoute, gates: readonly string[]): readonly string[] {
  const asked = keys.must_pass ?? false
  if (typeof asked === 'boolean') return asked ? gates : []
  asked.forEach((id, i) => {
    if (gates.includes(id)) return
    const where = [...at('must_pass'), i]
    problems.atValue(where, `${nameOf(where)}: "${id}" is no gate of this route${suggestion(id, gates)}`)
  })
  return asked
}

function checkRungs({ problems, keys, path, at, bad }: InRoute): void {
  const size = (keys.ladder ?? []).length
  if (size === 0 || bad.has('ladder')) return
  for (const key of ['start_rung', 'min_rung_tools', 'min_rung_images', 'strong_rung'] as const) {
    const value = keys[key]
    if (value === undefined || value < size) continue
    const where = at(key)
    const rungs = size === 1 ? 'only rung 0' : `rungs 0 to ${size - 1}`
    problems.atValue(
      where,
      `${nameOf(where)}: expected a rung of the ladder, got ${value}, but ${tableName(path)} has ${rungs}`,
    )
  }
}

/** Patterns in lower case, each once and in order, so that equal matches look equal. */
function resolveMatch(table: MatchTable): RouteMatch {
  const { has_tools, has_images, stream, min_body_bytes, max_body_bytes, header } = table
  const globs = Object.fromEntries(
    globKeys.flatMap(key => {
      const given = table[key]
      return given === undefined ? [] : [[key, lowered(typeof given === 'string' ? [given] : given)]]
    }),
  )
  const headers = Object.entries(header ?? {}).map(([name, glob]) => [name.toLowerCase(), glob.toLowerCase()] as const)
  return {
    ...globs,
    ...(has_tools !== undefined && { has_tools }),
    ...(has_images !== undefined && { has_images }),
    ...(stream !== undefined && { stream }),
    ...(min_body_bytes !== undefined && { min_body_bytes }),
    ...(max_body_bytes !== undefined && { max_body_bytes }),
    ...(headers.length > 0 && { header: named(headers) }),
  }
}

const lowered = (globs: readonly string[]) => [...new Set(globs.map(glob => glob.toLowerCase()))].sort()

function sameMatch(a: RouteMatch, b: RouteMatch): boolean {
  return canonicalize(a) === canonicalize(b)
}

function checkMatch(problems: Problems, path: Path, table: MatchTable): void {
  const { min_body_bytes: min, max_body_bytes: max } = table
  if (min !== undefined && max !== undefined && min > max) {
    const at = [...path, 'max_body_bytes']
    problems.atValue(at, `${nameOf(at)}: expected at least min_body_bytes, which is ${min}`)
  }
  for (const name of Object.keys(table.header ?? {})) {
    const at = [...path, 'header', name]
    if (!isHeaderName(name)) problems.atKey(at, `${nameOf(at)}: not a header name`)
    else if (isCredentialHeader(name))
      problems.atKey(at, `${nameOf(at)}: this header carries a key, and routes never look at keys`)
  }
  const apis = typeof table.api === 'string' ? [table.api] : (table.api ?? [])
  apis.forEach((glob, i) => {
    if (inboundApis.some(api => globMatches(glob, api))) return
    const at = typeof table.api === 'string' ? [...path, 'api'] : [...path, 'api', i]
    problems.atValue(
      at,
      `${nameOf(at)}: none of ${inboundApis.join(', ')} matches "${glob}"${suggestion(glob, inboundApis)}`,
    )
  })
}
