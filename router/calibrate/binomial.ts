/** ln(n!) less Stirling's leading terms, exact to the last digits where the series below is not. */
const SMALL_REMAINDERS: readonly number[] = (() => {
  const found = [0]
  let logFactorial = 0
  for (let n = 1; n <= 15; n++) {
    logFactorial += Math.log(n)
    found.push(logFactorial - 0.5 * Math.log(2 * Math.PI * n) - n * Math.log(n) + n)
  }
  return found
})()

/** ln(n!) - ln(sqrt(2πn)·(n/e)^n): small, so that differences of huge logarithms never have to be taken. */
function stirlingRemainder(n: number): number {
  if (n <= 15) return SMALL_REMAINDERS[n]!
  const square = n * n
  return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / (1188 * square)) / square) / square) / square) / n
}

/** x·ln(x/mean) + mean - x, which cancels badly when written like that near the mean. */
function deviance(x: number, mean: number): number {
  const distance = x - mean
  if (Math.abs(distance) >= 0.1 * (x + mean)) return x * Math.log(x / mean) - distance
  const ratio = distance / (x + mean)
  const square = ratio * ratio
  let sum = distance * ratio
  let power = 2 * x * ratio
  for (let odd = 3; ; odd += 2) {
    power *= square
    const next = sum + power / odd
    if (next === sum) return sum
    sum = next
  }
}

/**
 * ln P(X = k) for X ~ Bin(n, p), 0 < p < 1. The saddle-point form keeps all digits: ln n! of 2,000 is 13,200, and the
 * difference of such numbers would already miss the 12 digits that the tail promises.
 */
function logMass(n: number, k: number, p: number): number {
  if (k === 0) return n * Math.log1p(-p)
  if (k === n) return n * Math.log(p)
  const rest = n - k
  const remainders = stirlingRemainder(n) - stirlingRemainder(k) - stirlingRemainder(rest)
  const shape = 0.5 * Math.log(n / (2 * Math.PI * k * rest))
  return remainders - deviance(k, n * p) - deviance(rest, n * (1 - p)) + shape
}

/** A term smaller than this share of the sum no longer changes it. */
const NEGLIGIBLE = 1e-18

/**
 * P(X <= k) for X ~ Bin(n, p), 0 < p < 1, with an error below 1e-12 (docs/spec/router.md §7.2): the sum of the smaller tail
 * in logarithms, from its largest term outwards, so it takes about sqrt(n) steps and nothing underflows.
 */
export function binomialTail(n: number, k: number, p: number): number {
  if (k < 0) return 0
  if (k >= n) return 1
  const odds = p / (1 - p)
  if (k <= n * p) {
    let term = 1
    let sum = 1
    for (let i = k; i > 0 && term > sum * NEGLIGIBLE; i--) {
      term *= i / ((n - i + 1) * odds)
      sum += term
    }
    return Math.min(1, Math.exp(logMass(n, k, p) + Math.log(sum)))
  }
  let term = 1
  let sum = 1
  for (let i = k + 1; i < n && term > sum * NEGLIGIBLE; i++) {
    term *= ((n - i) * odds) / (i + 1)
    sum += term
  }
  return Math.max(0, 1 - Math.exp(logMass(n, k + 1, p) + Math.log(sum)))
}

/** The least n with P(Bin(n, p) <= k) <= delta: how many trials it takes to be sure, if no further one fails. */
export function trialsNeeded(k: number, p: number, delta: number): number {
  let enough = k + 1
  while (binomialTail(enough, k, p) > delta) enough *= 2
  let short = Math.floor(enough / 2)
  while (enough - short > 1) {
    const middle = Math.floor((short + enough) / 2)
    if (binomialTail(middle, k, p) <= delta) enough = middle
    else short = middle
  }
  return enough
}

/** The largest rate that k failures of n do not speak against at level delta (Clopper and Pearson's upper bound). */
export function upperBound(n: number, k: number, delta: number): number {
  if (k >= n) return 1
  let low = k / n
  let high = 1
  for (let i = 0; i < 60 && high - low > 1e-12; i++) {
    const middle = (low + high) / 2
    if (binomialTail(n, k, middle) > delta) low = middle
    else high = middle
  }
  return high
}
