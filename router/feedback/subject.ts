import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { RouteRef } from '../calibrate/route-cache.ts'

/** What an outcome says something about. */
export interface Subject {
  readonly tenantId: string
  readonly traceId: string
  /** Undefined where an outcome moves no threshold: nothing was decided or served, or the route is no longer known. */
  readonly served: { readonly route: RouteRef; readonly rung: number; readonly score: number | null } | undefined
}

/** The answer that an outcome is about (docs/spec/router.md §2.4): that of an enforced call that served something. */
export function servedAnswer({ mode, attempts, final }: UnsealedTrace) {
  if (mode !== 'enforce' || (final.served_from !== 'attempt' && final.served_from !== 'best_attempt')) return undefined
  // A rung is called again only after a call that gave no answer, so the last one is the one that was served.
  const served = attempts.findLast(({ rung, error_class }) => rung === final.served_rung && error_class === undefined)
  return served && { rung: served.rung, score: served.score }
}
