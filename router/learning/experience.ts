import { NO_TOKENS } from '../../shared/dialects/candidate.ts'
import type { Tokens } from '../../shared/wire/router/trace.ts'

/** What the attempts on one rung came to; sums in which each further attempt makes the earlier ones count for less. */
export interface RungExperience {
  readonly pass: number
  readonly fail: number
  /** Nano-USD, gates included. */
  readonly cost: number
}

/** What is known of one context of a route (docs/spec/router.md §7.5). */
export interface Experience {
  /** Attempts ever seen. */
  readonly seen: number
  /** Discounted attempts of all rungs, and their tokens: a rung that was never tried is priced by them. */
  readonly weight: number
  readonly tokens: Tokens
  /** By rung. */
  readonly rungs: readonly RungExperience[]
}

/** An answer that was gated. */
export interface Lesson {
  readonly rung: number
  readonly passed: boolean
  /** Nano-USD. */
  readonly cost: number
  readonly tokens: Tokens
}

const NOTHING: RungExperience = { pass: 0, fail: 0, cost: 0 }
export const NO_EXPERIENCE: Experience = { seen: 0, weight: 0, tokens: NO_TOKENS, rungs: [] }

export const weightOf = ({ pass, fail }: RungExperience): number => pass + fail

export const rungOf = ({ rungs }: Experience, rung: number): RungExperience => rungs[rung] ?? NOTHING

export function learned(from: Experience, { rung, passed, cost, tokens }: Lesson, discount: number): Experience {
  const rungs = [...from.rungs]
  while (rungs.length <= rung) rungs.push(NOTHING)
  const { pass, fail, cost: spent } = rungs[rung]!
  rungs[rung] = {
    pass: pass * discount + Number(passed),
    fail: fail * discount + Number(!passed),
    cost: spent * discount + cost,
  }
  const sum = (name: keyof Tokens) => from.tokens[name] * discount + tokens[name]
  return {
    seen: from.seen + 1,
    weight: from.weight * discount + 1,
    tokens: {
      uncached: sum('uncached'),
      cache_write_5m: sum('cache_write_5m'),
      cache_write_1h: sum('cache_write_1h'),
      cache_read: sum('cache_read'),
      output: sum('output'),
    },
    rungs,
  }
}
