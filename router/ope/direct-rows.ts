import { bootstrapMean, DRAWS, ofShare } from './bootstrap.ts'
import { type Estimate, type Metric, SEEDS } from './estimate.ts'
import { column } from './policy-rows.ts'

/** Direct replay: what the walked requests would have come to, beside what they did come to. */
export interface DirectReport {
  /** Requests that could be walked to their end. */
  n: number
  /** Share of the requests that those are. */
  coverage: number
  /** null where none could. */
  rehearsed: Estimate | null
  logged: Estimate | null
}

export function directRows(metric: Metric) {
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
