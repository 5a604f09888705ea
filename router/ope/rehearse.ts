import { toUsd } from '../../shared/money/money.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import type { StoredCalibration } from '../calibrate/calibration.ts'
import { type EntryRow, entriesOf, toEntry } from '../calibrate/calibration-store.ts'
import { routeThreshold } from '../calibrate/describe.ts'
import type { Route, RoutingConfig } from '../config/routing-config.ts'
import { contextOf } from '../learning/context.ts'
import { serveThreshold } from '../policy/knobs.ts'
import type { Span } from '../traces/stored-records.ts'
import { type DirectReport, directRows } from './direct-rows.ts'
import { estimatePolicy, type Metric, type PolicyEstimates } from './estimate.ts'
import { hasStart, loggedTraces, routeNames } from './logged-traces.ts'
import { policyRows } from './policy-rows.ts'
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
  const counts = { started: 0, unpriced: 0, silent: 0, observed: 0, forced: 0 }
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
    const warnings = [...estimates.warnings, ...gaps(metric, counts), ...limits(config)]
    return { metric, ...estimates, warnings, ...(config && { direct: direct[metric].report() }) }
  })
}

/** The threshold that a route of the config would be served by, as calibration stands now. */
async function thresholds(db: Db, { calibration }: RoutingConfig) {
  const rows = rowsOf<EntryRow>(await db.execute(entriesOf(undefined)))
  const kept = new Map<string, StoredCalibration>(
    rows.map(toEntry).map(entry => [`${entry.tenantId} ${entry.routeFp}`, entry.kept]),
  )
  return ({ tenant_id }: TraceRecord, route: Route, knobs: Parameters<typeof serveThreshold>[0]): number | null => {
    const own = kept.get(`${tenant_id} ${route.fingerprint}`)
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
  }: Record<'started' | 'unpriced' | 'silent' | 'observed' | 'forced', number>,
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
  if (observed > 0) warnings.push(`${observed} routed requests would not be routed by this config and are left out`)
  return warnings
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
