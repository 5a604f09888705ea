import type { Pair } from './certify-threshold.ts'

/** The thresholds that are watched, fixed before any answer is seen: 0, 0.05 … 1. */
export const EVIDENCE_GRID: readonly number[] = Array.from({ length: 21 }, (_, i) => i / 20)

export interface Bet {
  readonly alpha: number
  readonly delta: number
  /** Share staked on each answer, at most 0.5/(1-alpha), so that the evidence stays above zero. */
  readonly bet: number
}

/** E of each threshold of the grid. */
export type Evidence = readonly number[]

export const NO_EVIDENCE: Evidence = EVIDENCE_GRID.map(() => 1)

const factor = (failed: boolean, { alpha, bet }: Bet) => 1 + bet * (alpha - (failed ? 1 : 0))
const level = ({ delta }: Bet) => EVIDENCE_GRID.length / delta

/**
 * One answer more (docs/spec/router.md §7.2). While the chance of a failure above a threshold, after all that came before, is
 * alpha or more, its E is expected not to grow, so it passes G/delta with a chance of at most delta/G at any time at all.
 * The cap keeps old evidence from outlasting a change.
 */
export function addEvidence(evidence: Evidence, { score, failed, passedOver = -1 }: Pair, bet: Bet): number[] {
  const reached = Math.max(score, passedOver)
  const by = factor(failed, bet)
  const cap = 10 * level(bet)
  return evidence.map((e, i) => {
    const lambda = EVIDENCE_GRID[i]!
    if (reached < lambda) return e
    return Math.min(cap, e * (passedOver >= lambda ? factor(true, bet) : by))
  })
}

/** An outcome was corrected, or withdrawn (`to` undefined): its factor is taken out and the right one put in. */
export function correctEvidence(
  evidence: Evidence,
  { score, failed }: Pair,
  to: boolean | undefined,
  bet: Bet,
): number[] {
  const by = (to === undefined ? 1 : factor(to, bet)) / factor(failed, bet)
  const cap = 10 * level(bet)
  return evidence.map((e, i) => (score >= EVIDENCE_GRID[i]! ? Math.min(cap, e * by) : e))
}

/** The smallest threshold whose evidence stands; undefined while there is none. */
export function evidentThreshold(evidence: Evidence, bet: Bet): number | undefined {
  const found = evidence.findIndex(e => e >= level(bet))
  return found < 0 ? undefined : EVIDENCE_GRID[found]
}

/** The whole sequence in the order of time. */
export function eprocess(pairs: Iterable<Pair>, bet: Bet): { evidence: Evidence; threshold: number | undefined } {
  let evidence = NO_EVIDENCE
  for (const pair of pairs) evidence = addEvidence(evidence, pair, bet)
  return { evidence, threshold: evidentThreshold(evidence, bet) }
}
