/** Gives numbers from 0 up to 1, without 1. */
export type Uniform = () => number

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
