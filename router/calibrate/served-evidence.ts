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
  /** Failures from before it began, which are not in it. */
  readonly dropped?: number
}

/** Evidence that begins now, while so many answers count as failed. */
export const servedFrom = (failed: number): ServedEvidence => ({
  stakes: STAKES.map(() => 1),
  stands: false,
  dropped: failed,
})

/**
 * The evidence that fewer than alpha of the answers which a route serves fail, whatever their scores and whether or not their gates
 * passed: bets on each outcome as it is heard. While the chance of a failure is alpha or more, no bet is expected to
 * grow, so the mean of all passes 1/delta with a chance of at most delta over all times together (Ville's inequality): it may be
 * looked at after every outcome (docs/spec/router.md §7.2).
 */
export function addServed(evidence: ServedEvidence, from: Turn, to: Turn, claim: ServedClaim): ServedEvidence {
  const { dropped = 0 } = evidence
  // Which failures are in it is not known; those that are not would be taken out of it all the same.
  if (from === 'fail' && dropped > 0) return { ...evidence, dropped: dropped - 1 }
  const most = CAP / claim.delta
  const stakes = evidence.stakes.map((e, i) => Math.min(most, (e * factor(i, to, claim)) / factor(i, from, claim)))
  const mean = stakes.reduce((sum, e) => sum + e, 0) / stakes.length
  // Evidence that reached its bound holds until all of it is gone: a claim does not come and go with single outcomes.
  const stands = evidence.stands ? mean >= 1 : mean >= 1 / claim.delta
  return { stakes, stands, dropped }
}

function factor(i: number, turn: Turn, { alpha }: ServedClaim): number {
  if (turn === undefined) return 1
  const stake = STAKES[i]! / (1 - alpha)
  return 1 + stake * (alpha - (turn === 'fail' ? 1 : 0))
}

/** The fewest outcomes that can be evidence enough, if none of them is a failure. */
export function fewestServed(claim: ServedClaim): number {
  let evidence = servedFrom(0)
  for (let n = 0; ; n++) {
    if (evidence.stands) return n
    evidence = addServed(evidence, undefined, 'pass', claim)
  }
}
