import { upperBound } from './binomial.ts'
import {
  answersNeeded,
  type Claim,
  certifyThreshold,
  conformal,
  type Group,
  type Pair,
  type Tested,
  tieGroups,
} from './certify-threshold.ts'
import { EVIDENCE_GRID, eprocess } from './e-process.ts'

export const REPORT_METHODS = ['ltt', 'conformal', 'eprocess'] as const
export type ReportMethod = (typeof REPORT_METHODS)[number]

export interface ReportOptions extends Claim {
  method: ReportMethod
  bet: number
  /** Share of the pairs, the newest, that certify nothing and only show what the threshold then does. */
  holdout: number
}

export interface ReportPair extends Pair {
  readonly rung: number
}

/** One line of the table: what scores `lambda` or more. */
export interface ReportRow extends Group {
  rate: number
  ucb?: number
  p?: number
  evidence?: number
  outcome: Tested['outcome']
}

export interface CalibrationReport {
  method: ReportMethod
  alpha: number
  delta: number
  min_n: number
  /** Pairs that the threshold was computed from. */
  pairs: number
  /** Of them those before which an attempt was kept back by its score alone; at that score and below they count as failed. */
  passed_over: number
  certified: boolean
  threshold: number | null
  text: string
  table: ReportRow[]
  /** The same for the answers that the cheapest rung served. */
  rung0: ReportRow[]
  /** The threshold on pairs that had no part in it. */
  holdout?: { pairs: number; n: number; failures: number; rate: number | null; upper: number | null }
}

/** What `router calibrate` says about the pairs of a route, given in the order of time (docs/spec/router.md §7.1, §7.2). */
export function calibrationReport(pairs: readonly ReportPair[], options: ReportOptions): CalibrationReport {
  const { method, alpha, delta, minN, holdout } = options
  const cut = pairs.length - Math.floor(pairs.length * holdout)
  const used = pairs.slice(0, cut)
  const { rows, passed } = tableOf(used, options)
  const threshold = passed?.lambda ?? null
  return {
    method,
    alpha,
    delta,
    min_n: minN,
    pairs: used.length,
    passed_over: used.filter(({ passedOver }) => passedOver !== undefined).length,
    certified: passed !== undefined,
    threshold,
    text: passed ? certifiedText(passed, options) : missingText(used, options),
    table: rows,
    rung0: tableOf(
      used.filter(({ rung }) => rung === 0),
      options,
    ).rows,
    ...(holdout > 0 && { holdout: heldOut(pairs.slice(cut), threshold, delta) }),
  }
}

function tableOf(pairs: readonly Pair[], options: ReportOptions): { rows: ReportRow[]; passed: ReportRow | undefined } {
  const groups = tieGroups(pairs)
  const rate = ({ n, failures }: Group) => (n === 0 ? 0 : failures / n)
  if (options.method !== 'eprocess') {
    const walk = options.method === 'ltt' ? certifyThreshold(groups, options) : conformal(groups, options)
    const rows = walk.tested.map(one => ({ ...one, rate: rate(one) }))
    return { rows, passed: rows.findLast(({ outcome }) => outcome === 'passed') }
  }
  const { evidence } = eprocess(pairs, options)
  const enough = EVIDENCE_GRID.length / options.delta
  const rows = EVIDENCE_GRID.map((lambda, i): ReportRow => {
    const { n, failures } = groups.findLast(group => group.lambda >= lambda) ?? { n: 0, failures: 0 }
    const e = evidence[i]!
    return {
      lambda,
      n,
      failures,
      rate: rate({ lambda, n, failures }),
      evidence: e,
      outcome: e >= enough ? 'passed' : 'failed',
    }
  }).reverse()
  return { rows, passed: rows.findLast(({ outcome }) => outcome === 'passed') }
}

function certifiedText({ lambda, n, failures, p }: ReportRow, { alpha, delta }: Claim): string {
  const test = p === undefined ? '' : `, p=${p.toPrecision(4)}`
  return (
    `certified: of answers that score ${lambda} or more, at most ${percent(alpha)} fail, at ${percent(1 - delta)} confidence for this one look, if none depends on another ` +
    `(n=${n}, failed ${failures}${test})`
  )
}

/** Names the answers that the best group has, and how many it takes with the failures that it already has. */
function missingText(pairs: readonly Pair[], options: ReportOptions): string {
  const groups = tieGroups(pairs)
  const best = groups.find(({ n }) => n >= options.minN) ?? groups.at(-1) ?? { n: 0, failures: 0 }
  const method = options.method === 'conformal' ? 'conformal' : 'ltt'
  const need = answersNeeded(method, best.failures, options)
  const failures = best.failures === 0 ? '' : ` if no more than the ${best.failures} that failed so far do`
  return `not certified: n=${best.n}, need ${need}${failures}`
}

function heldOut(pairs: readonly Pair[], threshold: number | null, delta: number): CalibrationReport['holdout'] {
  const group = threshold === null ? undefined : tieGroups(pairs).findLast(({ lambda }) => lambda >= threshold)
  const { n, failures } = group ?? { n: 0, failures: 0 }
  return {
    pairs: pairs.length,
    n,
    failures,
    rate: n === 0 ? null : failures / n,
    upper: n === 0 ? null : upperBound(n, failures, delta),
  }
}

export const percent = (share: number): string => `${+(share * 100).toFixed(3)} %`

const UNITS = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
] as const

/** In the largest unit that it is a whole number of. */
export function lengthOf(ms: number): string {
  const [unit, name] = UNITS.find(([unit]) => ms % unit === 0) ?? [1000, 'second']
  const n = ms / unit
  return `${n} ${n === 1 ? name : `${name}s`}`
}
