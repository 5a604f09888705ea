/** Trace ids in their order, 16 bytes each. It can be handed to another thread. */
export interface TraceIdList {
  words: Uint32Array<ArrayBuffer>
  count: number
  /** Texts that have no 128 bits, by their place. */
  others: Map<number, string>
}

export const newTraceIdList = (): TraceIdList => ({ words: new Uint32Array(256), count: 0, others: new Map() })

export function pushTraceId(list: TraceIdList, id: string): void {
  if ((list.count + 1) * 4 > list.words.length) {
    const wider = new Uint32Array(list.words.length * 2)
    wider.set(list.words)
    list.words = wider
  }
  if (!pack(id, list.words, list.count * 4)) list.others.set(list.count, id)
  list.count++
}

/** Writes the 128 bits of a UUID; false for any other text, and for the zero one, whose slot would look empty. */
function pack(id: string, into: Uint32Array, at: number): boolean {
  if (id.length !== 36) return false
  let word = at
  let value = 0
  let digits = 0
  for (let place = 0; place < 36; place++) {
    const code = id.charCodeAt(place)
    if (place === 8 || place === 13 || place === 18 || place === 23) {
      if (code !== 0x2d) return false
      continue
    }
    const digit = code < 0x3a ? code - 0x30 : code < 0x67 ? code - 0x57 : -1
    if (digit < 0 || (code >= 0x3a && digit < 10)) return false
    value = (value << 4) | digit
    if (++digits % 8 === 0) into[word++] = value
  }
  return (into[at]! | into[at + 1]! | into[at + 2]! | into[at + 3]!) !== 0
}

/** Ids of one piece, 256 KiB. */
const PIECE = 1 << 14

/**
 * A set of trace ids that takes 16 bytes for each and 8 to 16 for finding it, where a Set of strings takes about 100. Exact: all 128 bits are
 * compared. An id stays where it was put, so that growing leaves little behind for the collector.
 */
export function traceIdSet() {
  const pieces: Uint32Array[] = []
  /** Places of ids, counted from 1, by their hash; at most half of them are used. */
  let slots = new Uint32Array(1024)
  let size = 0
  const others = new Set<string>()

  /** The slot that holds the id, or the free one where it belongs. */
  function slotOf(words: Uint32Array, at: number): number {
    const [a, b, c, d] = [words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!]
    // The last two words of a version 7 id are random; multiplied so that ids made by hand spread as well.
    let slot = Math.imul(d ^ (c << 7), 0x9e3779b1) ^ Math.imul(b ^ a, 0x85ebca77)
    for (;;) {
      slot &= slots.length - 1
      const place = slots[slot]! - 1
      if (place < 0) return slot
      const piece = pieces[Math.floor(place / PIECE)]!
      const from = (place % PIECE) * 4
      if (piece[from] === a && piece[from + 1] === b && piece[from + 2] === c && piece[from + 3] === d) return slot
      slot++
    }
  }

  function add(words: Uint32Array, at: number): boolean {
    if (size * 2 >= slots.length) grow()
    const slot = slotOf(words, at)
    if (slots[slot] !== 0) return false
    if (size % PIECE === 0) pieces.push(new Uint32Array(PIECE * 4))
    pieces.at(-1)!.set(words.subarray(at, at + 4), (size % PIECE) * 4)
    slots[slot] = ++size
    return true
  }

  function grow() {
    slots = new Uint32Array(slots.length * 2)
    for (let place = 0; place < size; place++) {
      slots[slotOf(pieces[Math.floor(place / PIECE)]!, (place % PIECE) * 4)] = place + 1
    }
  }

  return {
    /** The place of the first that was there already; undefined when all are new. */
    addAll(list: TraceIdList): number | undefined {
      for (let at = 0; at < list.count; at++) {
        const other = list.others.get(at)
        if (other !== undefined) {
          if (others.has(other)) return at
          others.add(other)
          continue
        }
        if (!add(list.words, at * 4)) return at
      }
      return undefined
    },
  }
}
