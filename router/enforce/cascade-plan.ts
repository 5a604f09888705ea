import type { Route, RoutingConfig } from '../config/routing-config.ts'
import type { ErrorBudgets } from '../gates/error-budgets.ts'
import type { Gate } from '../gates/gate.ts'
import type { GateProbes } from '../gates/gate-probes.ts'
import type { ShedReason } from '../metrics/live-metrics.ts'
import type { Knobs } from '../policy/knobs.ts'
import type { Start } from '../policy/start-rung.ts'
import type { Payer, PricedCallDeps } from './priced-call.ts'
import type { Inbound } from './upstream-request.ts'

/** What is decided before the first call of a request. */
export interface CascadePlan extends Payer {
  traceId: string
  tenantId: string
  inbound: Inbound
  config: RoutingConfig
  route: Route
  knobs: Knobs
  /** The score below which an answer is not served; null applies none. The same for the whole request. */
  threshold: number | null
  /** The gates of the route, in config order. */
  gates: readonly Gate[]
  start: Start & { rung: number }
  eligible: readonly number[]
  /** How likely an answer of a rung passes its gates; undefined where too little was learned. */
  passChance: (rung: number) => number | undefined
}

export interface CascadeDeps extends PricedCallDeps {
  errorBudgets: ErrorBudgets
  /** Finds out whether a gate that is switched off works again. */
  probes: Pick<GateProbes, 'consider'>
  /** Hears of a call that was refused because its answer had no room. */
  refuseWhenFull: (reason: ShedReason) => void
}
