import type { Turn } from './adaptive-conformal.ts'

export interface ServedClaim {
  readonly alpha: number
  readonly delta: number
}

/** Stakes as shares of the largest one that a failure cannot ruin; their mean does nearly as well as the best of them. */
const STAKES = [0.2, 0.4, 0.6, 0.8]
/** Older evidence than this is dropped, so that it does not outlast a change for long. */
const CAP = 100
/** Sessions that are known again: those that were reported on last. */
export const MOST_SESSIONS = 256

interface Bets {
  /** What each stake has come to; their mean is the evidence. */
  readonly stakes: readonly number[]
  /** It was enough, and has not been used up since. */
  readonly stands: boolean
}

type SessionTally = readonly [session: string, outcomes: number, failures: number]

export interface ServedEvidence {
  /** Bets on each outcome. */
  readonly answers: Bets
  /** Bets on each session: on the share of its outcomes that failed. */
  readonly sessions: Bets
  /** Of the sessions that were reported on last, the newest behind. */
  readonly tallies: readonly SessionTally[]
  /** Sessions that were reported on since it began. */
  readonly sessionsSeen: number
  /** Failures from before it began, which are not in it. */
  readonly dropped: number
}

const NO_BETS: Bets = { stakes: STAKES.map(() => 1), stands: false }

/** Evidence that begins now, while so many answers count as failed. */
export const servedFrom = (failed: number): ServedEvidence => ({
  answers: NO_BETS,
  sessions: NO_BETS,
  tallies: [],
  sessionsSeen: 0,
  dropped: failed,
})

export const servedStands = ({ answers, sessions }: ServedEvidence): boolean => answers.stands && sessions.stands

/** An outcome that is heard, corrected or withdrawn, and the session of its answer. */
export interface Heard {
  readonly session: string
  readonly from: Turn
  readonly to: Turn
}

/**
 * The evidence that fewer than alpha of the answers which a route serves fail, whatever their scores and whether or not their gates
 * passed: bets on each outcome as it is heard. While the chance of a failure is alpha or more, no bet is expected to
 * grow, so the mean of all passes 1/delta with a chance of at most delta over all times together (Ville's inequality): it may be
 * looked at after every outcome (docs/spec/router.md §7.4). Answers of one session are right or wrong together, so after a good one the
 * chance of the next is not what it is over all sessions: the same bets are made on sessions as well, each of them one outcome, and the
 * claim needs both.
 */
export function addServed(evidence: ServedEvidence, { session, from, to }: Heard, claim: ServedClaim): ServedEvidence {
  const { answers, sessions, tallies, sessionsSeen, dropped } = evidence
  // Which failures are in it is not known; those that are not would be taken out of it all the same.
  if (from === 'fail' && dropped > 0) return { ...evidence, dropped: dropped - 1 }
  const known = tallies.find(([name]) => name === session)
  const before = known ?? [session, 0, 0]
  const after = tallyAfter(before, from, to)
  return {
    answers: betOn(answers, rateOf(from), rateOf(to), claim),
    sessions: betOn(sessions, rateOfSession(before), rateOfSession(after), claim),
    tallies: [...tallies.filter(one => one !== known), after].slice(-MOST_SESSIONS),
    sessionsSeen: sessionsSeen + (known === undefined ? 1 : 0),
    dropped,
  }
}

/** What left the tallies is not taken out of them, but a failure always counts. */
function tallyAfter([session, outcomes, failures]: SessionTally, from: Turn, to: Turn): SessionTally {
  const failed = Math.max(0, failures + Number(to === 'fail') - Number(from === 'fail'))
  const heard = outcomes + Number(to !== undefined) - Number(from !== undefined)
  return [session, Math.max(failed, heard), failed]
}

const rateOf = (turn: Turn) => (turn === undefined ? undefined : Number(turn === 'fail'))
const rateOfSession = ([, outcomes, failures]: SessionTally) => (outcomes === 0 ? undefined : failures / outcomes)

/** Takes the bet on the one rate back and makes it on the other; undefined stands for none. */
function betOn({ stakes, stands }: Bets, from: number | undefined, to: number | undefined, claim: ServedClaim): Bets {
  const most = CAP / claim.delta
  const after = stakes.map((e, i) => Math.min(most, (e * factor(i, to, claim)) / factor(i, from, claim)))
  const mean = after.reduce((sum, e) => sum + e, 0) / after.length
  // Evidence that reached its bound holds until all of it is gone: a claim does not come and go with single outcomes.
  return { stakes: after, stands: stands ? mean >= 1 : mean >= 1 / claim.delta }
}

function factor(i: number, rate: number | undefined, { alpha }: ServedClaim): number {
  return rate === undefined ? 1 : 1 + (STAKES[i]! / (1 - alpha)) * (alpha - rate)
}

/** The fewest outcomes that can be evidence enough, if none of them is a failure and each is of another session. */
export function fewestServed(claim: ServedClaim): number {
  let bets = NO_BETS
  for (let n = 0; ; n++) {
    if (bets.stands) return n
    bets = betOn(bets, undefined, 0, claim)
  }
}
