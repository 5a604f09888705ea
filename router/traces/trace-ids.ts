const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * A set of trace ids that takes 16 bytes for each slot, at most 3/4 of them used, where a Set of strings takes about 100. Exact: all
 * 128 bits are compared.
 */
export function traceIdSet() {
  let capacity = 1024
  let words = new Uint32Array(capacity * 4)
  let size = 0
  // The slot of the zero id would look empty, and other texts have no 128 bits: both are kept as they are.
  const others = new Set<string>()

  function place(into: Uint32Array, slots: number, a: number, b: number, c: number, d: number): boolean {
    // The last two words of a version 7 id are random; multiplied so that ids made by hand spread as well.
    let slot = (Math.imul(d ^ (c << 7), 0x9e3779b1) ^ Math.imul(b ^ a, 0x85ebca77)) >>> 0
    for (;;) {
      const at = (slot & (slots - 1)) * 4
      if ((into[at]! | into[at + 1]! | into[at + 2]! | into[at + 3]!) === 0) {
        into[at] = a
        into[at + 1] = b
        into[at + 2] = c
        into[at + 3] = d
        return true
      }
      if (into[at] === a && into[at + 1] === b && into[at + 2] === c && into[at + 3] === d) return false
      slot++
    }
  }

  function grow() {
    const wider = new Uint32Array(capacity * 8)
    for (let at = 0; at < words.length; at += 4) {
      const [a, b, c, d] = [words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!]
      if ((a | b | c | d) !== 0) place(wider, capacity * 2, a, b, c, d)
    }
    capacity *= 2
    words = wider
  }

  return {
    /** False when the id was there already. */
    add(id: string): boolean {
      if (!UUID.test(id) || id === '00000000-0000-0000-0000-000000000000') {
        if (others.has(id)) return false
        others.add(id)
        return true
      }
      if (size * 4 >= capacity * 3) grow()
      const a = Number.parseInt(id.slice(0, 8), 16)
      const b = Number.parseInt(id.slice(9, 13) + id.slice(14, 18), 16)
      const c = Number.parseInt(id.slice(19, 23) + id.slice(24, 28), 16)
      const d = Number.parseInt(id.slice(28), 16)
      const added = place(words, capacity, a, b, c, d)
      if (added) size++
      return added
    },
  }
}
