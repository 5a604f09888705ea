import type { Turn } from './adaptive-conformal.ts'

export interface ServedClaim {
  readonly alpha: number
  readonly delta: number
}

/** Stakes as shares of the largest one that a failure cannot ruin; their mean does nearly as well as the best of them. */
const STAKES = [0.2, 0.4, 0.6, 0.8]
/** Older evidence than this is dropped, so that it does not outlast a change for long. */
const CAP = 100

export interface ServedEvidence {
  /** What each stake has come to; their mean is the evidence. */
  readonly stakes: readonly number[]
  /** It was enough, and has not been used up since. */
  readonly stands: boolean
}

export const NO_SERVED_EVIDENCE: ServedEvidence = { stakes: STAKES.map(() => 1), stands: false }

/**
 * The evidence that fewer than alpha of the answers which a route serves fail, whatever their scores and whether or not their gates
 * passed: bets on each outcome as it is heard. While the chance of a failure is alpha or more, no bet is expected to
 * grow, so the mean of all passes 1/delta with a chance of at most delta over all times together (Ville's inequality): it may be
 * looked at after every outcome (docs/spec/router.md §7.2).
 */
export function addServed(evidence: ServedEvidence, from: Turn, to: Turn, claim: ServedClaim): ServedEvidence {
  const most = CAP / claim.delta
  const stakes = evidence.stakes.map((e, i) => Math.min(most, (e * factor(i, to, claim)) / factor(i, from, claim)))
  const mean = stakes.reduce((sum, e) => sum + e, 0) / stakes.length
  // Evidence that reached its bound holds until all of it is gone, then it is collected again: a claim does not come and go with single outcomes.
  if (evidence.stands && mean < 1) return withdrawn(stakes)
  return { stakes, stands: evidence.stands || mean >= 1 / claim.delta }
}

/**
 * What speaks for the claim is dropped. What speaks against it stays: a failure that is corrected later is taken out of a product that holds it.
 */
export const withdrawn = (stakes: ServedEvidence['stakes']): ServedEvidence => ({
  stakes: stakes.map(e => Math.min(1, e)),
  stands: false,
})

function factor(i: number, turn: Turn, { alpha }: ServedClaim): number {
  if (turn === undefined) return 1
  const stake = STAKES[i]! / (1 - alpha)
  return 1 + stake * (alpha - (turn === 'fail' ? 1 : 0))
}

/** The fewest outcomes that can be evidence enough, if none of them is a failure. */
export function fewestServed(claim: ServedClaim): number {
  let evidence = NO_SERVED_EVIDENCE
  for (let n = 0; ; n++) {
    if (evidence.stands) return n
    evidence = addServed(evidence, undefined, 'pass', claim)
  }
}
