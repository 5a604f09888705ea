import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import type { StoredCalibration } from '../calibrate/calibration.ts'
import { evidenceOf, routeThreshold } from '../calibrate/calibration-reads.ts'
import { type EntryRow, entriesOf, toEntry, turnOf } from '../calibrate/calibration-store.ts'
import type { RouteRef } from '../calibrate/route-cache.ts'
import type { Route, RoutingConfig } from '../config/routing-config.ts'
import { contextOf } from '../learning/learner.ts'
import { serveThreshold } from '../policy/knobs.ts'
import type { outcomes as outcomeTable, routingConfigs } from '../schema/tables.ts'
import { exportRecords, type Span } from '../traces/stored-records.ts'
import {
  bootstrapMean,
  DRAWS,
  type Estimate,
  estimatePolicy,
  type Metric,
  ofShare,
  type PolicyEstimates,
  SEEDS,
} from './estimate.ts'
import { column, policyRows } from './policy-rows.ts'
import { rehearsedRoute } from './rehearsed-route.ts'
import { replay } from './replay.ts'

/** The policy that is rehearsed: one start for every request, or the starts of a config. */
export type PolicyTarget = { readonly startRung: number } | { readonly config: RoutingConfig }

export interface RehearseAsk {
  readonly target: PolicyTarget
  readonly metrics: readonly Metric[]
  readonly span: Span
}

/** `router ope` and the audit server's rehearsal. Costs are US dollars a request, failures a share of the answers. */
export interface Rehearsal extends PolicyEstimates {
  metric: Metric
  /** Only of a config: its ladder walked over the attempts that were made. */
  direct?: DirectReport
}

/** Reads the store once, a page at a time, and estimates what another policy would have cost and failed (docs/spec/router.md §7.7). */
export async function rehearse(db: Db, { target, metrics, span }: RehearseAsk): Promise<Rehearsal[]> {
  const rows = { cost: policyRows(), failure: policyRows() }
  const direct = { cost: directRows('cost'), failure: directRows('failure') }
  const counts = { started: 0, unpriced: 0, silent: 0, observed: 0, forced: 0, unexplored: 0 }
  const sessions = new Set<number>()
  const routeName = await routeNames(db)
  const config = 'config' in target ? target.config : undefined
  const thresholdOf = config && (await thresholds(db, config))

  for await (const page of loggedTraces(db, span)) {
    for (const { trace, failed } of page) {
      if (!hasStart(trace)) continue
      const rehearsed = config && rehearsedRoute(trace, config)
      if (config !== undefined && rehearsed === undefined) {
        counts.observed += 1
        continue
      }
      counts.started += 1
      sessions.add(sessionMark(trace))
      const { policy, attempts, final } = trace
      // Where no policy had a say, none can be judged: such a row in the count would water every mean down.
      const isForced = policy.id.endsWith('+forced')
      if (isForced) counts.forced += 1
      const starts =
        'startRung' in target
          ? { logged: `rung ${policy.start_rung}`, target: `rung ${target.startRung}` }
          : { logged: attempts[0]!.model, target: rehearsed!.route.ladder[rehearsed!.start.rung]!.model }
      const row = {
        context: contextOf(trace.request.features),
        route: routeName(trace),
        propensity: policy.propensity,
        ...starts,
      }
      // Whether the target's start had a chance stands on no receipt; with exploration it had.
      const hadChance = starts.logged === starts.target || policy.id.includes('+eps')
      if (!isForced && policy.propensity < 1 && !hadChance) counts.unexplored += 1
      const cost = final.total_cost_usd
      if (cost === null) counts.unpriced += 1
      else if (!isForced) rows.cost.add({ ...row, value: cost })
      if (failed === undefined) counts.silent += 1
      else if (!isForced) rows.failure.add({ ...row, value: failed ? 1 : 0 })
      if (rehearsed === undefined || config === undefined) continue
      const threshold = thresholdOf!(trace, rehearsed.route, rehearsed.knobs)
      const walked = replay(trace, rehearsed, { gates: config.gates, threshold })
      const known = walked.kind === 'walked' && cost !== null
      direct.cost.add(known ? { rehearsed: toUsd(walked.cost), logged: cost } : undefined)
      const same = walked.kind === 'walked' && walked.servedModel === final.served_model && failed !== undefined
      direct.failure.add(same ? { rehearsed: Number(failed), logged: Number(failed) } : undefined)
    }
  }

  return metrics.map(metric => {
    const estimates = estimatePolicy(rows[metric], metric)
    const walked = config && direct[metric].report()
    const warnings = [
      ...estimates.warnings,
      ...gaps(metric, counts),
      ...together(counts.started, sessions.size),
      ...partly(walked),
      ...limits(config),
    ]
    return { metric, ...estimates, warnings, ...(walked && { direct: walked }) }
  })
}

/** The threshold that a route of the config would be served by, as calibration stands now. */
async function thresholds(db: Db, { calibration }: RoutingConfig) {
  const rows = rowsOf<EntryRow>(await db.execute(entriesOf(undefined)))
  const kept = new Map<string, StoredCalibration>(
    rows.map(toEntry).map(entry => [`${entry.tenantId} ${entry.routeFp}`, entry.kept]),
  )
  return ({ tenant_id }: TraceRecord, route: Route, knobs: Parameters<typeof serveThreshold>[0]): number | null => {
    const own = kept.get(`${tenant_id} ${evidenceOf(route)}`)
    return serveThreshold(knobs, routeThreshold(route.serveThreshold, own, calibration), own?.lost ?? false)
  }
}

/** Requests that could not be counted. */
function gaps(
  metric: Metric,
  {
    started,
    unpriced,
    silent,
    observed,
    forced,
    unexplored,
  }: Record<'started' | 'unpriced' | 'silent' | 'observed' | 'forced' | 'unexplored', number>,
): string[] {
  const warnings: string[] = []
  if (metric === 'cost' && unpriced > 0) {
    warnings.push(`${unpriced} of ${started} requests have no known cost and are left out`)
  }
  if (metric === 'failure' && started > 0 && silent * 2 > started) {
    warnings.push(`no outcome was reported of ${silent} of ${started} requests, and those may be other ones`)
  }
  if (forced > 0) {
    warnings.push(
      `a header or a floor decided the start of ${forced} of ${started} requests: they are left out of ips, snips and dr`,
    )
  }
  if (unexplored > 0) {
    warnings.push(
      `${unexplored} of ${started} starts were drawn without exploration: where the rehearsed one had no chance, ips is too low, so turn on epsilon in [learning]`,
    )
  }
  if (observed > 0) warnings.push(`${observed} routed requests would not be routed by this config and are left out`)
  return warnings
}

/** 32 bits, so that the sessions of a whole store fit into memory. */
function sessionMark({ tenant_id, session_id }: TraceRecord): number {
  let hash = 0x811c9dc5
  for (const char of `${tenant_id} ${session_id}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193)
  return hash
}

/** Simulated with sessions that fail as a whole: of 5 requests each, an interval of 95 % holds the truth in 73 of 100 cases, of 20 in 36. */
function together(requests: number, sessions: number): string[] {
  if (requests <= 1.5 * sessions) return []
  return [
    `the ${requests} requests are of ${sessions} sessions, and those of one session mostly go well or badly together: ` +
      'the intervals suppose requests that do not depend on each other, and are too narrow',
  ]
}

/** Below this share of requests the walked ones are too few to stand for all. */
const MOST_WALKED = 0.95

/** Whether a request can be walked depends on how its logged attempts went, so a part of them is no sample of all. */
function partly(walked: DirectReport | undefined): string[] {
  if (walked === undefined || walked.n === 0 || walked.coverage >= MOST_WALKED) return []
  return [
    `only ${(100 * walked.coverage).toFixed(1)} % of the requests could be walked, mostly those of which the logged policy asked more rungs: ` +
      'what they come to does not stand for all requests, and may say the opposite of ips, snips and dr',
  ]
}

/** What a record cannot tell of a config. */
function limits(config: RoutingConfig | undefined): string[] {
  const warnings: string[] = []
  if (config?.routes.some(({ match }) => match.header !== undefined)) {
    warnings.push('receipts hold no headers: routes that match by header are taken to match nothing')
  }
  if (config !== undefined && config.learning.algorithm !== 'off') {
    warnings.push('the learned start of this config is left out: its routes are rehearsed from their start_rung')
  }
  return warnings
}

/** Direct replay: what the walked requests would have come to, beside what they did come to. */
interface DirectReport {
  /** Requests that could be walked to their end. */
  n: number
  /** Share of the requests that those are. */
  coverage: number
  /** null where none could. */
  rehearsed: Estimate | null
  logged: Estimate | null
}

function directRows(metric: Metric) {
  const rehearsed = column(Float64Array)
  const logged = column(Float64Array)
  let asked = 0
  return {
    /** Undefined for a request that is not evaluable. */
    add(one: { rehearsed: number; logged: number } | undefined): void {
      asked += 1
      if (one === undefined) return
      rehearsed.push(one.rehearsed)
      logged.push(one.logged)
    },
    report: (draws = DRAWS): DirectReport => ({
      n: rehearsed.size(),
      coverage: asked === 0 ? 0 : rehearsed.size() / asked,
      rehearsed: meanOf(rehearsed.filled(), draws, metric),
      logged: meanOf(logged.filled(), draws, metric),
    }),
  }
}

function meanOf(values: Float64Array, draws: number, metric: Metric): Estimate | null {
  if (values.length === 0) return null
  const sum = values.reduce((all, value) => all + value, 0)
  const ci = bootstrapMean(values, draws, SEEDS[metric])
  return { value: sum / values.length, ci: metric === 'failure' ? ofShare(ci, values.length) : ci }
}

interface LoggedTrace {
  readonly trace: TraceRecord
  /** Whether the served answer failed; undefined until it is reported. */
  readonly failed: boolean | undefined
}

/** Every record of a window with what was reported about it, a page at a time. */
async function* loggedTraces(db: Db, span: Span): AsyncGenerator<LoggedTrace[]> {
  const [from, to] = [span.since?.toISOString() ?? '', span.until?.toISOString()]
  for await (const page of exportRecords(db, span)) {
    const traces = page
      .map(text => readJson(text) as TraceRecord)
      .filter(({ ts }) => ts >= from && (to === undefined || ts < to))
    const first = traces[0]
    if (first === undefined) continue
    // A page is a piece of one chain, so all of it is of one tenant.
    const outcomes = await outcomesOf(
      db,
      first.tenant_id,
      traces.map(({ trace_id }) => trace_id),
    )
    yield traces.map(trace => ({ trace, failed: outcomes.get(trace.trace_id) }))
  }
}

/** A routed request that got as far as a call: only such a start has a cost or an outcome. */
function hasStart({ mode, attempts, policy }: TraceRecord): boolean {
  return mode === 'enforce' && attempts.length > 0 && policy.propensity > 0
}

async function outcomesOf(db: Db, tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, boolean>> {
  const answer = await db.execute({
    sql: `select trace_id, fails, passes from outcomes
      where tenant_id = ? and trace_id in (select value from json_each(?))`,
    args: [tenant, JSON.stringify(ids)],
  })
  const outcomes = new Map<string, boolean>()
  for (const { trace_id, fails, passes } of rowsOf<Pick<RowOf<typeof outcomeTable>, 'trace_id' | 'fails' | 'passes'>>(
    answer,
  )) {
    const turn = turnOf({ fails, passes })
    if (turn !== undefined) outcomes.set(trace_id, turn === 'fail')
  }
  return outcomes
}

/** Names of routes over the configs that this store has seen: a route that only moved is the same route. */
async function routeNames(db: Db): Promise<(trace: TraceRecord) => string> {
  const answer = await db.execute('select config_hash, body from routing_configs')
  const known = new Map(
    rowsOf<Pick<RowOf<typeof routingConfigs>, 'config_hash' | 'body'>>(answer).map(({ config_hash, body }) => [
      config_hash,
      (readJson(body) as { routes: RouteRef[] }).routes,
    ]),
  )
  return ({ policy, route_ix }) =>
    known.get(policy.config_hash)?.[route_ix ?? -1]?.fingerprint ?? `${policy.config_hash} ${route_ix}`
}
