import { xoshiroBlocks } from '../policy/xoshiro128.ts'

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
export function middle95(values: Iterable<number>): [low: number, high: number] {
  const sorted = [...values].filter(value => !Number.isNaN(value)).sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN
  return [at(0.025), at(0.975)]
}

/** The middle 95 % of the mean over `draws` resamples of the values. */
export function bootstrapMean(values: ArrayLike<number>, draws: number, seed: number): [low: number, high: number] {
  const [sums] = resampledSums([Float64Array.from(values)], draws, seed)
  return middle95(sums!.map(sum => sum / values.length))
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
