import { xoshiroBlocks } from '../policy/xoshiro128.ts'
import type { PolicyColumns, PolicyRows } from './policy-rows.ts'

export type Metric = 'cost' | 'failure'

export interface Estimate {
  value: number
  /** The middle 95 % of the bootstrap. */
  ci: [low: number, high: number]
}

export interface PolicyEstimates {
  /** Rows that the estimates are made of. */
  n: number
  /** What was measured under the policies that logged the rows. */
  logged: Estimate | null
  /** null where no row was started as the target starts: there is nothing to estimate from. */
  ips: Estimate | null
  snips: Estimate | null
  dr: Estimate | null
  /** Rows that the weighted ones are worth, (Σw)² / Σw². */
  ess: number
  /** Share of the rows that were started as the target starts. */
  coverage: number
  warnings: string[]
}

/** docs/spec/router.md §7.7: the seeds of the three bootstraps. */
export const SEEDS = { cost: 42, failure: 43, dr: 44 } as const
const FEW = 30
const HEAVY = 20

/**
 * What the target policy would have given on the logged rows: by inverse propensities, by the same with weights that sum
 * to one, and doubly robust over the means of what was logged (docs/spec/router.md §7.7).
 */
export function estimatePolicy(rows: PolicyRows, metric: Metric, draws = DRAWS): PolicyEstimates {
  const { columns, left } = judged(rows.columns())
  const { value } = columns
  const n = value.length
  const weights = weightsOf(columns)
  const sums = summed(weights)
  const ess = sums.squares === 0 ? 0 : (sums.sum * sums.sum) / sums.squares
  const warnings = warningsOf(columns, { ...sums, ess, left })
  const base = { n, ess, coverage: n === 0 ? 0 : sums.matched / n, warnings }
  if (n === 0) return { ...base, logged: null, ips: null, snips: null, dr: null }

  const weighted = weights.map((weight, i) => weight * value[i]!)
  const [resampledWeighted, resampledWeights, resampledValues] = resampledSums(
    [weighted, weights, value],
    draws,
    SEEDS[metric],
  )
  const shared = (ci: [number, number], rows: number) => (metric === 'failure' ? ofShare(ci, rows) : ci)
  const over = (all: Float64Array, worth: number) => shared(interval95(all.map(sum => sum / n)), worth)
  const logged = { value: total(value) / n, ci: over(resampledValues!, n) }
  if (sums.matched === 0) return { ...base, logged, ips: null, snips: null, dr: null }

  const sum = total(weighted)
  const robust = doublyRobust(columns, weights)
  return {
    ...base,
    logged,
    ips: { value: sum / n, ci: over(resampledWeighted!, ess) },
    snips: {
      value: sum / sums.sum,
      // A resample without a single matching row has no such ratio.
      ci: shared(interval95(resampledWeighted!.map((one, i) => one / resampledWeights![i]!)), ess),
    },
    dr: { value: total(robust) / n, ci: over(resampledSums([robust], draws, SEEDS.dr)[0]!, ess) },
  }
}

/**
 * The rows of which the target can be judged. One that could start in no other way than it did says nothing of another start, and in
 * the count it would water every mean down. Where no row can be judged, all are there for what was logged.
 */
function judged(columns: PolicyColumns): { columns: PolicyColumns; left: number } {
  const { context, logged, target, propensity, value } = columns
  const canMatch = (i: number) => propensity[i]! < 1 || logged[i] === target[i]
  const left = value.reduce((count, _, i) => count + (canMatch(i) ? 0 : 1), 0)
  if (left === 0 || left === value.length) return { columns, left }
  const own = {
    context: context.filter((_, i) => canMatch(i)),
    logged: logged.filter((_, i) => canMatch(i)),
    target: target.filter((_, i) => canMatch(i)),
    propensity: propensity.filter((_, i) => canMatch(i)),
    value: value.filter((_, i) => canMatch(i)),
  }
  return { columns: { ...columns, ...own }, left }
}

/** w = 1[a = target] / e */
function weightsOf({ logged, target, propensity }: PolicyColumns): Float64Array {
  return propensity.map((chance, i) => (logged[i] === target[i] ? 1 / chance : 0))
}

/** Each row's m(x, target) + w (c - m(x, a)). */
function doublyRobust(columns: PolicyColumns, weights: Float64Array): Float64Array {
  const mean = meansOf(columns)
  const { context, logged, target, value } = columns
  return value.map((one, i) => mean(context[i]!, target[i]!) + weights[i]! * (one - mean(context[i]!, logged[i]!)))
}

/** The mean of a start in its context, else on its route, else of all rows. */
function meansOf({ context, logged, value, routeOf, actions }: PolicyColumns) {
  const inContext = new Map<number, { sum: number; n: number }>()
  const onRoute = new Map<number, { sum: number; n: number }>()
  const key = (of: number, action: number) => of * actions.length + action
  const add = (to: typeof inContext, at: number, one: number) => {
    const mean = to.get(at)
    if (mean === undefined) to.set(at, { sum: one, n: 1 })
    else {
      mean.sum += one
      mean.n += 1
    }
  }
  for (let i = 0; i < value.length; i++) {
    add(inContext, key(context[i]!, logged[i]!), value[i]!)
    add(onRoute, key(routeOf[context[i]!]!, logged[i]!), value[i]!)
  }
  const all = total(value) / value.length
  return (of: number, action: number): number => {
    const found = inContext.get(key(of, action)) ?? onRoute.get(key(routeOf[of]!, action))
    return found === undefined ? all : found.sum / found.n
  }
}

function total(values: Float64Array): number {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += values[i]!
  return sum
}

function summed(weights: Float64Array) {
  let [sum, squares, largest, matched] = [0, 0, 0, 0]
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i]!
    if (weight === 0) continue
    matched += 1
    sum += weight
    squares += weight * weight
    largest = Math.max(largest, weight)
  }
  return { sum, squares, largest, matched }
}

/** What keeps these estimates from being believed as they stand. */
function warningsOf(columns: PolicyColumns, of: ReturnType<typeof summed> & { ess: number; left: number }): string[] {
  const { logged, target, actions } = columns
  const n = logged.length
  const made = new Set(logged)
  const never = [...new Set(target)].filter(action => !made.has(action)).map(action => actions[action]!)
  const warnings: string[] = []
  if (never.length > 0) warnings.push(`the target starts at ${never.join(', ')}, where no logged request started`)
  if (n > 0 && of.ess < FEW) {
    warnings.push(`the weighted rows are worth ${of.ess.toFixed(1)} (fewer than ${FEW}): the estimates mean little`)
  }
  if (of.largest > HEAVY) {
    warnings.push(`one row stands for ${of.largest.toFixed(1)} (more than ${HEAVY}): a few rows decide the estimates`)
  }
  if (of.left > 0) {
    const all = of.left === n ? n : n + of.left
    const out = of.left === n ? '' : ' and are left out'
    warnings.push(
      `${of.left} of ${all} rows had one possible start (propensity 1), and not the target's: they say nothing of it${out}, so turn on epsilon in [learning]`,
    )
  }
  return warnings
}

/** Resamples behind an interval, unless a contract names another number. */
export const DRAWS = 1000
const UINT32 = 4_294_967_296

/**
 * The sums of each column over each of `draws` resamples of its rows; columns of one call are drawn together, row by row, so that a
 * ratio of two of them is a ratio within one resample.
 */
export function resampledSums(columns: readonly Float64Array[], draws: number, seed: number): Float64Array[] {
  const fill = xoshiroBlocks(seed)
  const n = columns[0]?.length ?? 0
  const drawn = new Uint32Array(n)
  const sums = columns.map(() => new Float64Array(draws))
  for (let draw = 0; draw < draws; draw++) {
    fill(drawn)
    toPlaces(drawn)
    for (let at = 0; at < columns.length; at++) sums[at]![draw] = sumOf(columns[at]!, drawn)
  }
  return sums
}

/** floor(u / 2^32 * n) of each word; dividing n first is exact, as 2^32 is a power of two. */
function toPlaces(drawn: Uint32Array): void {
  const scale = drawn.length / UINT32
  for (let i = 0; i < drawn.length; i++) drawn[i] = drawn[i]! * scale
}

function sumOf(column: Float64Array, places: Uint32Array): number {
  let sum = 0
  for (let i = 0; i < places.length; i++) sum += column[places[i]!]!
  return sum
}

/** The middle 95 % of what the resamples gave; those that gave no number are left out. */
export function interval95(values: Iterable<number>): [low: number, high: number] {
  const sorted = [...values].filter(value => !Number.isNaN(value)).sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN
  return [at(0.025), at(0.975)]
}

/** The middle 95 % of the mean over `draws` resamples of the values. */
export function bootstrapMean(values: ArrayLike<number>, draws: number, seed: number): [low: number, high: number] {
  const [sums] = resampledSums([Float64Array.from(values)], draws, seed)
  return interval95(sums!.map(sum => sum / values.length))
}

/**
 * An interval of a share of failures. Resamples of rows that all say the same have no width, though few rows say little: there it is
 * the exact one of so many rows without a failure, or with nothing else (Clopper and Pearson).
 */
export function ofShare([low, high]: [number, number], rows: number): [low: number, high: number] {
  if (low !== high || rows <= 0) return [low, high]
  if (high <= 0) return [0, 1 - 0.025 ** (1 / rows)]
  return low >= 1 ? [0.025 ** (1 / rows), 1] : [low, high]
}
