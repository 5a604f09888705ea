import type { Tokens } from '../../shared/dialects/candidate.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { attemptCost, inputTokens, type Price } from '../../shared/prices/price.ts'

/** Fewer samples than these measure nothing (docs/spec/router.md §7.6). */
export const FEWEST = 30

/** What one request took on the rung that served it, and on the top rung. */
export interface Pair {
  servedIn: number
  servedOut: number
  topIn: number
  topOut: number
}

/** How many tokens the top rung takes for one of the served rungs. */
export interface Ratios {
  input: number
  output: number
}

export type ShadowSums = ReturnType<typeof shadowSums>

/** The sums of the shadow samples of every route of every tenant. */
export function shadowSums() {
  const sums = new Map<string, Pair & { n: number }>()

  return {
    add(tenantId: string, route: string, pair: Pair, n = 1): void {
      const key = `${tenantId}/${route}`
      const sum = sums.get(key) ?? { servedIn: 0, servedOut: 0, topIn: 0, topOut: 0, n: 0 }
      sums.set(key, {
        servedIn: sum.servedIn + pair.servedIn,
        servedOut: sum.servedOut + pair.servedOut,
        topIn: sum.topIn + pair.topIn,
        topOut: sum.topOut + pair.topOut,
        n: sum.n + n,
      })
    },
    /** Undefined until there are enough samples. */
    ratios(tenantId: string, route: string): Ratios | undefined {
      const sum = sums.get(`${tenantId}/${route}`)
      if (sum === undefined || sum.n < FEWEST || sum.servedIn === 0 || sum.servedOut === 0) return undefined
      return { input: sum.topIn / sum.servedIn, output: sum.topOut / sum.servedOut }
    },
  }
}

export function pairOf(served: Tokens, top: Tokens): Pair {
  return {
    servedIn: inputTokens(served),
    servedOut: served.output,
    topIn: inputTokens(top),
    topOut: top.output,
  }
}

/** What the top rung would have cost: the served tokens, by class, times what it takes for each of them. */
export function calibratedCost(top: Price, served: Tokens, ratios: Ratios): NanoUsd {
  const input = attemptCost(top, { ...served, output: 0 })
  const whole = attemptCost(top, served)
  return Math.round(input * ratios.input + (whole - input) * ratios.output)
}
