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
  if (!pack(id, list.words, list.count * 4)) list.others.set(list.count, ownText(id))
  list.count++
}

/** A copy: a piece of a longer text keeps all of it in memory. */
export const ownText = (piece: string): string => piece.split('').join('')

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

/**
 * A set of trace ids that takes 16 bytes for each slot, at most 3/4 of them used, where a Set of strings takes about 100. Exact: all
 * 128 bits are compared.
 */
export function traceIdSet() {
  let capacity = 1024
  let words = new Uint32Array(capacity * 4)
  let size = 0
  const others = new Set<string>()

  function place(into: Uint32Array, slots: number, from: Uint32Array, at: number): boolean {
    const [a, b, c, d] = [from[at]!, from[at + 1]!, from[at + 2]!, from[at + 3]!]
    // The last two words of a version 7 id are random; multiplied so that ids made by hand spread as well.
    let slot = (Math.imul(d ^ (c << 7), 0x9e3779b1) ^ Math.imul(b ^ a, 0x85ebca77)) >>> 0
    for (;;) {
      const to = (slot & (slots - 1)) * 4
      if ((into[to]! | into[to + 1]! | into[to + 2]! | into[to + 3]!) === 0) {
        into[to] = a
        into[to + 1] = b
        into[to + 2] = c
        into[to + 3] = d
        return true
      }
      if (into[to] === a && into[to + 1] === b && into[to + 2] === c && into[to + 3] === d) return false
      slot++
    }
  }

  function grow() {
    const wider = new Uint32Array(capacity * 8)
    for (let at = 0; at < words.length; at += 4) {
      if ((words[at]! | words[at + 1]! | words[at + 2]! | words[at + 3]!) !== 0) place(wider, capacity * 2, words, at)
    }
    capacity *= 2
    words = wider
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
        if (size * 4 >= capacity * 3) grow()
        if (!place(words, capacity, list.words, at * 4)) return at
        size++
      }
      return undefined
    },
  }
}
