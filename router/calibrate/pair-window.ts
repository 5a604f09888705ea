import type { Turn } from './adaptive-conformal.ts'
import type { Pair } from './certify-threshold.ts'

const NONE = 0
const PASS = 1
const FAIL = 2

/**
 * The newest `size` pairs of a route in a ring, by their place `ix` in the order in which they came. A pair whose outcome was
 * withdrawn keeps its place and counts for nothing.
 */
export class PairWindow {
  readonly size: number
  readonly #scores: Float64Array
  readonly #turns: Uint8Array
  #next = 0

  constructor(size: number) {
    this.size = size
    this.#scores = new Float64Array(size)
    this.#turns = new Uint8Array(size)
  }

  /** One behind the newest place. */
  get next(): number {
    return this.#next
  }

  get first(): number {
    return Math.max(0, this.#next - this.size)
  }

  /**
   * Sets the outcome at the next place, or corrects one of an earlier place; gives the pair that stood in its slot. A place
   * that has left the window is left alone.
   */
  put(ix: number, score: number, turn: Turn): { taken: boolean; before: Pair | undefined } {
    if (ix < this.first) return { taken: false, before: undefined }
    const slot = ix % this.size
    const before = this.#at(slot)
    this.#scores[slot] = score
    this.#turns[slot] = turn === undefined ? NONE : turn === 'fail' ? FAIL : PASS
    this.#next = Math.max(this.#next, ix + 1)
    return { taken: true, before }
  }

  #at(slot: number): Pair | undefined {
    const turn = this.#turns[slot]
    return turn === NONE ? undefined : { score: this.#scores[slot]!, failed: turn === FAIL }
  }

  *pairs(): Generator<Pair> {
    for (let ix = this.first; ix < this.#next; ix++) {
      const pair = this.#at(ix % this.size)
      if (pair) yield pair
    }
  }

  copy(): PairWindow {
    const made = new PairWindow(this.size)
    made.#scores.set(this.#scores)
    made.#turns.set(this.#turns)
    made.#next = this.#next
    return made
  }
}
