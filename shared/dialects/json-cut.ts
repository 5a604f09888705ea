import type { Span } from './json-scan.ts'

/** An item of an array or a member of an object, with whether it stays. */
export interface CutItem extends Span {
  readonly drop: boolean
}

/** What to cut so that the dropped items are gone, each with one comma; the bytes of the others stay as they are. */
export function cutsOf(items: readonly CutItem[]): Span[] {
  const first = items.findIndex(({ drop }) => !drop)
  return items.flatMap(({ start, end, drop }, i) => {
    if (!drop) return []
    const next = items[i + 1]
    return first < 0 || i < first ? { start, end: next?.start ?? end } : { start: items[i - 1]!.end, end }
  })
}

/** The bytes without some stretches, which are in order and do not overlap. */
export function withoutSpans(bytes: Uint8Array, cuts: readonly Span[]): Uint8Array {
  const out = new Uint8Array(cuts.reduce((size, { start, end }) => size - (end - start), bytes.length))
  let from = 0
  let at = 0
  for (const { start, end } of [...cuts, { start: bytes.length, end: bytes.length }]) {
    out.set(bytes.subarray(from, start), at)
    at += start - from
    from = end
  }
  return out
}
