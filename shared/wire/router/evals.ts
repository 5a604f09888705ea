import { z } from 'zod'
import { query } from '../aliases.ts'
import { count } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { calibrationState } from './calibration.ts'
import { window } from './conventions.ts'

export const evalsQuery = query(window)

export const gateStats = z.object({
  gate_id: z.string(),
  pass: count,
  fail: count,
  abstain: count,
  disabled: z.boolean(),
  cost_usd: z.number(),
  p50_ms: z.number().nullable(),
  p95_ms: z.number().nullable(),
})
export type GateStats = z.infer<typeof gateStats>

/** How many answers went from one rung to another, or back to the same; `from` is null where a call came in. */
export const rungMove = z.object({ from: count.nullable(), to: count, requests: count })
export type RungMove = z.infer<typeof rungMove>

/** How the calls of one route were served; null: of calls that no route took. */
export const routeRungs = z.object({
  route_ix: count.nullable(),
  requests: count,
  served_by_rung: z.record(z.string(), count),
})
export type RouteRungs = z.infer<typeof routeRungs>

/** From a call's arrival to the end of its answer, over the newest calls, about 1,000 in all and as many of each tenant. */
export const callLatency = z.object({ calls: count, p50_ms: z.number().nullable(), p95_ms: z.number().nullable() })

export const evals = named(
  'Evals',
  z.object({
    requests: count,
    escalations: count,
    failovers: count,
    served_by_rung: z.record(z.string(), count),
    latency: callLatency,
    /** In the order of the config; what no route took comes last. */
    routes: z.array(routeRungs),
    moves: z.array(rungMove),
    gates: z.array(gateStats),
    outcomes: z.object({
      reported: count,
      failed: count,
      /** failed ÷ reported; null before the first report. */
      served_failure: z.number().nullable(),
      /** Upper bound of the failure rate at 95 % confidence. */
      ucb95: z.number().nullable(),
    }),
    calibration: z.array(calibrationState),
  }),
)
export type Evals = z.infer<typeof evals>
