import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import type { Route, RoutingConfig } from '../config/routing-config.ts'
import type { CalibrationCache } from './calibration-cache.ts'
import { describeCalibration, givesScores, routeThreshold } from './describe.ts'

/** The gauges of docs/spec/router.md §2.7. */
export interface CalibrationFigures {
  /** The highest threshold of a route in use. */
  threshold: number
  /** Failed of reported, since the store began. */
  servedFailure: number
  routes: { tenant: string; route: number; threshold: number; servedFailure: number; certified: boolean; n: number }[]
}

type Config = Pick<RoutingConfig, 'routes' | 'calibration' | 'gates'>

/** What calibration says to requests, to gauges and to people. Without a store there is no book, and thresholds stay where they start. */
export function calibrationReads(book: CalibrationCache | undefined, config: () => Config) {
  const keptOf = (tenantId: string, { fingerprint }: Pick<Route, 'fingerprint'>) =>
    book?.get(tenantId, fingerprint)?.kept
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
      await book?.caughtUp()
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
      await book?.caughtUp()
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

  function tenantsOf({ fingerprint }: Route, tenantId: string | undefined): string[] {
    if (tenantId !== undefined) return [tenantId]
    return [...(book?.all() ?? [])].flatMap(entry => (entry.routeFp === fingerprint ? [entry.tenantId] : []))
  }
}
