/** `npm run test:full`: every case of every enumeration. */
export const isFull = process.env.WAYBILL_TEST_FULL === '1'

/**
 * The cases of a long enumeration that this run does: all of them in a full run, else `most`, chosen by the seed that the run prints, in
 * their order. `WAYBILL_TEST_SEED` repeats a choice.
 */
export function slice<T>(name: string, all: readonly T[], most: number): readonly T[] {
  if (isFull || all.length <= most) return all
  const random = mulberry32(hash(`${process.env.WAYBILL_TEST_SEED ?? '0'} ${name}`))
  const places = all.map((_, place) => ({ place, key: random() })).toSorted((a, b) => a.key - b.key)
  const chosen = new Set(places.slice(0, most).map(({ place }) => place))
  return all.filter((_, place) => chosen.has(place))
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value >>> 0
}

function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
