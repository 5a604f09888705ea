import { attemptCost, pricesFor } from '../../shared/prices/price.ts'
import type { Learning, Rung } from '../config/routing-config.ts'
import type { Draw } from '../policy/start-rung.ts'
import { type Experience, rungOf, weightOf } from './experience.ts'

export interface DrawInput {
  readonly ladder: readonly Rung[]
  readonly eligible: readonly number[]
  /** Bounds of a learned start, both included. */
  readonly bounds: { readonly least: number; readonly most: number }
  readonly experience: Experience
  readonly settings: Pick<Learning, 'algorithm' | 'ucbC'>
  readonly epsilon: number
  /** Where a sticky session was, and how much of its prompt it reads from the cache there. */
  readonly session: { readonly rung: number; readonly cacheReadTokens: number } | undefined
  readonly uniform: Uniform
}

const POSTERIOR_DRAWS = 64

/**
 * Draws a start rung (docs/spec/router.md §7.5): each possible start is weighed by what it would cost until an answer passes, and the
 * chance that it had goes on the receipt, exactly: the draw is made from the very shares that are logged. Undefined where a rung has no price
 * or no start is left.
 */
export function drawStart(input: DrawInput): Draw | undefined {
  const { ladder, eligible, bounds, settings, epsilon, uniform } = input
  const starts = eligible.filter(rung => rung >= bounds.least && rung <= bounds.most)
  const costs = rungCosts(input)
  if (starts.length === 0 || costs === undefined) return undefined
  const extra = starts.map(start => switchCost(input, start))
  const best = (passes: readonly number[]) => cheapest(expectedCosts(input.eligible, passes, costs), starts, extra)
  const shares = ladder.map(() => 0)
  if (settings.algorithm === 'ucb') {
    shares[best(optimistic(input))] = 1
  } else {
    for (let draw = 0; draw < POSTERIOR_DRAWS; draw++) {
      const passes = ladder.map(({ rung }) => {
        const { pass, fail } = rungOf(input.experience, rung)
        return drawBeta(1 + pass, 1 + fail, uniform)
      })
      shares[best(passes)]! += 1 / POSTERIOR_DRAWS
    }
  }
  const explored = uniform() < epsilon
  const each = epsilon / starts.length
  return {
    rung: explored ? starts[Math.floor(uniform() * starts.length)]! : drawn(shares, uniform()),
    chances: shares.map((share, rung) => (1 - epsilon) * share + (starts.includes(rung) ? each : 0)),
    explored,
  }
}

/** The mean cost of an attempt on each rung; where there was none, the mean tokens at its price. */
function rungCosts({ ladder, experience }: DrawInput): number[] | undefined {
  const { tokens, weight } = experience
  const mean = (sum: number) => Math.round(sum / weight)
  const costs = ladder.map(({ rung, price }) => {
    const known = rungOf(experience, rung)
    if (weightOf(known) > 0) return known.cost / weightOf(known)
    if (price === null || weight === 0) return undefined
    return attemptCost(price, {
      uncached: mean(tokens.uncached),
      cache_write_5m: mean(tokens.cache_write_5m),
      cache_write_1h: mean(tokens.cache_write_1h),
      cache_read: mean(tokens.cache_read),
      output: mean(tokens.output),
    })
  })
  return costs.every(cost => cost !== undefined) ? costs : undefined
}

/** C(s) = Σ over r from s of (Π of (1 - p) from s to r) · c_r, for each eligible s. */
export function expectedCosts(
  eligible: readonly number[],
  passes: readonly number[],
  costs: readonly number[],
): ReadonlyMap<number, number> {
  const expected = new Map<number, number>()
  let above = 0
  for (const rung of eligible.toReversed()) {
    above = costs[rung]! + (1 - passes[rung]!) * above
    expected.set(rung, above)
  }
  return expected
}

/** The lowest of several that cost the same. */
function cheapest(expected: ReadonlyMap<number, number>, starts: readonly number[], extra: readonly number[]): number {
  const total = (at: number) => expected.get(starts[at]!)! + extra[at]!
  let best = 0
  for (let at = 1; at < starts.length; at++) if (total(at) < total(best)) best = at
  return starts[best]!
}

/** Another rung reads anew what this session has in the cache of the one it is on. */
function switchCost({ ladder, session }: DrawInput, start: number): number {
  const price = ladder[start]!.price
  if (session === undefined || session.rung === start || price === null) return 0
  const { uncached, cache_read } = pricesFor(price, session.cacheReadTokens)
  return (session.cacheReadTokens * Number(uncached - cache_read)) / 1000
}

/** The upper confidence bound of each rung's pass rate; one that was never tried is taken to pass. */
function optimistic({ ladder, experience, settings }: DrawInput): number[] {
  const all = ladder.reduce((sum, { rung }) => sum + weightOf(rungOf(experience, rung)), 0)
  return ladder.map(({ rung }) => {
    const known = rungOf(experience, rung)
    const n = weightOf(known)
    if (n === 0) return 1
    return Math.min(1, known.pass / n + settings.ucbC * Math.sqrt(Math.log(Math.max(1, all)) / n))
  })
}

function drawn(shares: readonly number[], at: number): number {
  let reached = 0
  for (let rung = 0; rung < shares.length; rung++) {
    reached += shares[rung]!
    if (at < reached) return rung
  }
  // The shares add up to 1 but for a rounding.
  return shares.findLastIndex(share => share > 0)
}

/** Gives numbers from 0 up to 1, without 1. */
type Uniform = () => number

/** A draw from Beta(a, b) for a, b of at least 1. */
export function drawBeta(a: number, b: number, uniform: Uniform): number {
  const x = drawGamma(a, uniform)
  return x / (x + drawGamma(b, uniform))
}

/** A draw from Gamma(shape, 1) for shapes of at least 1, by the squeeze of Marsaglia and Tsang (2000), which takes about one try. */
function drawGamma(shape: number, uniform: Uniform): number {
  const d = shape - 1 / 3
  const c = 1 / Math.sqrt(9 * d)
  for (;;) {
    const x = drawNormal(uniform)
    const v = (1 + c * x) ** 3
    if (v <= 0) continue
    // 1 - u lies above 0, where the logarithm is finite.
    if (Math.log(1 - uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v
  }
}

/** Box and Muller. */
function drawNormal(uniform: Uniform): number {
  return Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
}
