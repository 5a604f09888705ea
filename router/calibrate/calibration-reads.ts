import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import type { Route, RoutingConfig, Calibration as Settings } from '../config/routing-config.ts'
import { gateKinds } from '../gates/gate-kinds.ts'
import { calibratedThreshold, countedOutcomes, isCertified, type StoredCalibration } from './calibration.ts'
import type { CalibrationCache } from './calibration-cache.ts'
import { lengthOf, percent } from './report.ts'
import { fewestServed } from './served-evidence.ts'

/** The gauges of docs/spec/router.md §2.7. */
export interface CalibrationFigures {
  /** The highest threshold of a route in use. */
  threshold: number
  /** Failed of reported, since the store began. */
  servedFailure: number
  routes: { tenant: string; route: number; threshold: number; servedFailure: number; certified: boolean; n: number }[]
}

/** What outcomes of a route are kept under: they say nothing of it under other gates or models. */
export const evidenceOf = ({ fingerprint, evidence = fingerprint }: Pick<Route, 'fingerprint' | 'evidence'>): string =>
  evidence

type Config = Pick<RoutingConfig, 'routes' | 'calibration' | 'gates'>

interface Learned {
  readonly book: CalibrationCache
  /** Has the outcomes counted that are old enough by now; who reads waits for no write. */
  ageSoon(): void
}

/** What calibration says to requests, to gauges and to people. Without a store there is no book, and thresholds stay where they start. */
export function calibrationReads(learned: Learned | undefined, config: () => Config) {
  const book = learned?.book
  const current = async () => {
    learned?.ageSoon()
    await book?.caughtUp()
  }
  const keptOf = (tenantId: string, route: Route) => book?.get(tenantId, evidenceOf(route))?.kept
  const laddered = () => config().routes.filter(({ ladder }) => ladder.length > 0)

  return {
    /** For a request about to be planned. */
    of(tenantId: string, route: Route): { threshold: number | null; lost: boolean } {
      book?.refreshSoon()
      const kept = keptOf(tenantId, route)
      return {
        threshold: routeThreshold(route.serveThreshold, kept, config().calibration),
        lost: kept?.lost ?? false,
      }
    },

    /** Of one tenant every route with a ladder; of all tenants those that have outcomes. */
    async describe(tenantId: string | undefined): Promise<CalibrationState[]> {
      await current()
      const { calibration: settings, gates } = config()
      return laddered().flatMap(route =>
        tenantsOf(route, tenantId).map(tenant =>
          describeCalibration({
            tenantId: tenant,
            kept: keptOf(tenant, route),
            settings,
            route: { ...route, scores: givesScores(route, gates) },
          }),
        ),
      )
    },

    async figures(): Promise<CalibrationFigures> {
      await current()
      const { calibration: settings, gates } = config()
      let reported = 0
      let failed = 0
      for (const { kept } of book?.all() ?? []) {
        reported += kept.reported
        failed += kept.failed
      }
      const thresholds = laddered().flatMap(route => {
        const tenants = tenantsOf(route, undefined)
        return (tenants.length > 0 ? tenants : ['']).map(
          tenant => routeThreshold(route.serveThreshold, keptOf(tenant, route), settings) ?? 0,
        )
      })
      const routes = laddered().flatMap(route =>
        tenantsOf(route, undefined).map(tenant => {
          const kept = keptOf(tenant, route)!
          const state = describeCalibration({
            tenantId: tenant,
            kept,
            settings,
            route: { ...route, scores: givesScores(route, gates) },
          })
          return {
            tenant,
            route: route.ix,
            threshold: state.threshold ?? 0,
            servedFailure: kept.reported === 0 ? 0 : kept.failed / kept.reported,
            certified: state.state === 'certified',
            n: state.n,
          }
        }),
      )
      return {
        threshold: Math.max(0, ...thresholds),
        servedFailure: reported === 0 ? 0 : failed / reported,
        routes,
      }
    },
  }

  function tenantsOf(route: Route, tenantId: string | undefined): string[] {
    if (tenantId !== undefined) return [tenantId]
    return [...(book?.all() ?? [])].flatMap(entry => (entry.routeFp === evidenceOf(route) ? [entry.tenantId] : []))
  }
}

interface Described {
  tenantId: string
  route: { ix: number; serveThreshold: number | null; scores: boolean }
  kept: StoredCalibration | undefined
  settings: Settings
}

/** Whether any gate of a route can give an answer a score that a threshold tells from 0 and 1. */
export function givesScores({ gates }: Pick<Route, 'gates'>, known: RoutingConfig['gates']): boolean {
  return gates.some(id => known[id] !== undefined && gateKinds[known[id].kind].scores)
}

/** The threshold of a route: a fixed one of the config beats what was learned. */
export function routeThreshold(
  fixed: number | null,
  kept: StoredCalibration | undefined,
  settings: Settings,
): number | null {
  return fixed ?? calibratedThreshold(kept, settings)
}

/** Where one route's threshold stands, as capabilities and evals show it. */
export function describeCalibration({ tenantId, route, kept, settings }: Described): CalibrationState {
  const threshold = routeThreshold(route.serveThreshold, kept, settings)
  const held = route.serveThreshold !== null || kept?.pinned != null
  const isSure = threshold !== null && isCertified(kept, settings, threshold)
  const notes = [
    ...(isSure ? [] : stillYoung(kept, settings)),
    ...heardLate(kept, settings),
    ...(route.scores ? [] : [NO_SCORES]),
  ]
  return {
    tenant_id: tenantId,
    route_ix: route.ix,
    state: threshold === null ? 'off' : isSure ? 'certified' : 'not_certified',
    method: held ? 'fixed' : settings.method,
    threshold,
    n: kept?.n ?? 0,
    alpha: settings.alpha,
    delta: settings.delta,
    reported: kept?.reported ?? 0,
    failed: kept?.failed ?? 0,
    counted: countedOutcomes(kept, settings),
    feedback_delay_s: settings.feedbackDelayMs / 1000,
    sessions: (kept?.mature?.bets ?? kept?.servedBets)?.sessionsSeen ?? 0,
    fewest: Math.max(settings.minN, fewestServed(settings)),
    claim: claimOf(settings),
    threshold_acts: route.scores,
    ...(notes.length > 0 && { note: notes.join('. ') }),
  }
}

function claimOf({ alpha, delta, feedbackDelayMs }: Settings): string {
  const heard =
    feedbackDelayMs === 0
      ? 'failures are reported as soon as successes'
      : `failures are reported within ${lengthOf(feedbackDelayMs)}`
  return (
    `of all answers that this route serves and that are reported on, those that failed their gates included and those from its cache left out, at most ${percent(alpha)} fail; ` +
    `such a claim is made wrongly with a chance of at most ${percent(delta)}, however often it is looked at, where sessions do not depend on each other and ${heard}`
  )
}

function stillYoung(kept: StoredCalibration | undefined, { feedbackDelayMs }: Settings): string[] {
  const young = kept?.mature ? kept.reported - kept.mature.reported : 0
  if (young <= 0) return []
  return [
    `${young} of ${kept!.reported} reported outcomes do not count for a certificate yet: each counts once its answer is ` +
      `${lengthOf(feedbackDelayMs)} old (feedback_delay_s), as a failure may still be reported until then`,
  ]
}

/** A share of late failures above this is worth a word. */
const LATE = 0.05

function heardLate(kept: StoredCalibration | undefined, { feedbackDelayMs }: Settings): string[] {
  const { late = 0, failed = 0 } = kept?.mature ?? {}
  if (late <= LATE * failed) return []
  return [
    `${late} of ${failed} failures were reported when their answer was more than ${lengthOf(feedbackDelayMs)} old: set feedback_delay_s ` +
      'to the time within which nearly all are reported, or a certificate may be wrong',
  ]
}

const scoring = Object.values(gateKinds).filter(({ scores }) => scores)
/** Those first that need no more than a model. */
const SCORING = [...scoring.filter(kind => kind.callsModels), ...scoring.filter(kind => !kind.callsModels)].map(
  ({ kind }) => kind,
)

const NO_SCORES =
  'every gate of this route says yes or no, so no threshold can tell its answers apart: what lowers failures here is a stricter ' +
  `gate, one that gives scores (${SCORING.slice(0, -1).join(', ')} or ${SCORING.at(-1)}), or a higher start_rung`
