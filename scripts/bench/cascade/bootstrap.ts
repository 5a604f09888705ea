/** Words that spread a small seed over a whole state. */
function* splitmix32(seed: number): Generator<number> {
  for (let state = seed >>> 0; ; ) {
    state = (state + 0x9e3779b9) >>> 0
    let word = state ^ (state >>> 16)
    word = Math.imul(word, 0x85ebca6b)
    word ^= word >>> 13
    word = Math.imul(word, 0xc2b2ae35)
    yield (word ^ (word >>> 16)) >>> 0
  }
}

/** xoshiro128** seeded with four words of splitmix32 (router contract §7.7). */
export function xoshiro128(seed: number): () => number {
  const words = splitmix32(seed)
  let [a, b, c, d] = [0, 0, 0, 0].map(() => words.next().value as number) as [number, number, number, number]
  const rotate = (x: number, by: number) => ((x << by) | (x >>> (32 - by))) >>> 0
  return () => {
    const out = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotate(d, 11)
    return out
  }
}

/** The middle 95 % of the mean over `draws` resamples of the values. */
export function bootstrapMean(values: readonly number[], draws: number, seed: number): [low: number, high: number] {
  const next = xoshiro128(seed)
  const n = values.length
  const means = Array.from({ length: draws }, () => {
    let sum = 0
    for (let i = 0; i < n; i++) sum += values[Math.floor((next() / 4_294_967_296) * n)]!
    return sum / n
  }).sort((a, b) => a - b)
  const at = (share: number) => means[Math.round(share * (draws - 1))]!
  return [at(0.025), at(0.975)]
}
