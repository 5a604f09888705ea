import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import type { Calibration as Settings } from '../config/routing-config.ts'
import { calibratedThreshold, isCertified, type Kept } from './calibration.ts'

export interface Described {
  tenantId: string
  route: { ix: number; serveThreshold: number | null }
  kept: Kept | undefined
  settings: Settings
}

/** The threshold of a route: a fixed one of the config beats what was learned. */
export function routeThreshold(fixed: number | null, kept: Kept | undefined, settings: Settings): number | null {
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
  }
}
