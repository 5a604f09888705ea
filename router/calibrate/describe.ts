import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import type { Route, RoutingConfig, Calibration as Settings } from '../config/routing-config.ts'
import { gateKinds } from '../gates/gate-kinds.ts'
import { calibratedThreshold, isCertified, type StoredCalibration } from './calibration.ts'
import { percent } from './report.ts'
import { fewestServed } from './served-evidence.ts'

export interface Described {
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
  return {
    tenant_id: tenantId,
    route_ix: route.ix,
    state: threshold === null ? 'off' : isCertified(kept, settings, threshold) ? 'certified' : 'not_certified',
    method: held ? 'fixed' : settings.method,
    threshold,
    n: kept?.n ?? 0,
    alpha: settings.alpha,
    delta: settings.delta,
    reported: kept?.reported ?? 0,
    failed: kept?.failed ?? 0,
    fewest: Math.max(settings.minN, fewestServed(settings)),
    claim: claimOf(settings),
    threshold_acts: route.scores,
    ...(!route.scores && { note: NO_SCORES }),
  }
}

function claimOf({ alpha, delta }: Settings): string {
  return (
    `of all answers that this route serves and that are reported on, those that failed their gates included, at most ${percent(alpha)} fail; ` +
    `such a claim is made wrongly with a chance of at most ${percent(delta)}, however often it is looked at`
  )
}

const scoring = Object.values(gateKinds).filter(({ scores }) => scores)
/** Those first that need no more than a model. */
const SCORING = [...scoring.filter(kind => kind.callsModels), ...scoring.filter(kind => !kind.callsModels)].map(
  ({ kind }) => kind,
)

const NO_SCORES =
  'every gate of this route says yes or no, so no threshold can tell its answers apart: what lowers failures here is a stricter ' +
  `gate, one that gives scores (${SCORING.slice(0, -1).join(', ')} or ${SCORING.at(-1)}), or a higher start_rung`
