import type { Turn } from './adaptive-conformal.ts'

export interface ServedClaim {
  readonly alpha: number
  readonly delta: number
}

/** Stakes as shares of the largest one that a failure cannot ruin; their mean does nearly as well as the best of them. */
const STAKES = [0.2, 0.4, 0.6, 0.8]
/** Older evidence than this is dropped, so that it does not outlast a change for long. */
const CAP = 100
/** Sessions whose outcomes are known: those that were reported on last. */
export const MOST_SESSIONS = 256
/** Sessions from before them that are known again; then all of these are forgotten. */
const MOST_EARLIER = 16_384

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
  /** Marks of the sessions that left the tallies, and how many they are; absent before the first. */
  readonly earlier?: { readonly rows: readonly string[]; readonly count: number }
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

export const isServedEvidenceEnough = ({ answers, sessions }: ServedEvidence): boolean =>
  answers.stands && sessions.stands

/** An outcome that is heard, corrected or withdrawn, and the session of its answer. */
export interface OutcomeChange {
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
export function addServed(
  evidence: ServedEvidence,
  { session, from, to }: OutcomeChange,
  claim: ServedClaim,
): ServedEvidence {
  const { tallies, dropped } = evidence
  // Which failures are in it is not known; those that are not would be taken out of it all the same.
  if (from === 'fail' && dropped > 0) return { ...evidence, dropped: dropped - 1 }
  const known = tallies.find(([name]) => name === session)
  const before = known ?? [session, 0, 0]
  const after = tallyAfter(before, from, to)
  const answers = betOn(evidence.answers, rateOf(from), rateOf(to), claim)
  const sessions = betOn(evidence.sessions, rateOfSession(before), rateOfSession(after), claim)
  if (known === undefined && isEarlier(evidence, session)) {
    // It had its bet, and a further one would count it twice; but a failure that is found later counts.
    const isFound = from !== undefined && to === 'fail'
    return { ...evidence, answers, sessions: isFound ? sessions : evidence.sessions }
  }
  const all = [...tallies.filter(one => one !== known), after]
  const left = all.length > MOST_SESSIONS ? all[0] : undefined
  return {
    ...(left ? withEarlier(evidence, left[0]) : evidence),
    answers,
    sessions,
    tallies: left ? all.slice(1) : all,
    sessionsSeen: evidence.sessionsSeen + (known === undefined ? 1 : 0),
  }
}

/** Two bits for each session, of 256 rows of 64 hex digits. A session may bear the marks of two others: then it is no evidence. */
const ROWS = 256
const DIGITS = 64

interface Mark {
  readonly row: number
  readonly digit: number
  readonly bit: number
}

function marksOf(session: string): Mark[] {
  let hash = 0x811c9dc5
  for (let i = 0; i < session.length; i++) hash = Math.imul(hash ^ session.charCodeAt(i), 0x01000193)
  return [hash >>> 16, hash & 0xffff].map(half => ({
    row: half % ROWS,
    digit: (half >> 8) >> 2,
    bit: 1 << ((half >> 8) & 3),
  }))
}

const digitAt = (rows: readonly string[], { row, digit }: Mark) => Number.parseInt(rows[row]![digit]!, 16)

function isEarlier({ earlier }: ServedEvidence, session: string): boolean {
  return earlier !== undefined && marksOf(session).every(mark => (digitAt(earlier.rows, mark) & mark.bit) !== 0)
}

function withEarlier(evidence: ServedEvidence, session: string): ServedEvidence {
  const { earlier } = evidence
  const isFull = earlier === undefined || earlier.count >= MOST_EARLIER
  const rows = isFull ? Array<string>(ROWS).fill('0'.repeat(DIGITS)) : [...earlier.rows]
  for (const mark of marksOf(session)) {
    const row = rows[mark.row]!
    const marked = (digitAt(rows, mark) | mark.bit).toString(16)
    rows[mark.row] = row.slice(0, mark.digit) + marked + row.slice(mark.digit + 1)
  }
  return { ...evidence, earlier: { rows, count: isFull ? 1 : earlier.count + 1 } }
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

/** A place in the order of a route's answers. */
export interface AnswerPlace {
  readonly answeredMs: number
  readonly traceId: string
}

/**
 * What the outcomes of answers come to that are older than `feedbackDelayMs`, in the order of the answers. Failures are often heard later
 * than successes; among these none is missing any more.
 */
export interface MatureEvidence {
  /** The last answer that counts; undefined until the first look at the clock. */
  readonly upTo?: AnswerPlace
  /** Outcomes since the evidence began. */
  readonly outcomes: number
  /** Answers with an outcome, of all up to `upTo`, and those of them that count as failed. */
  readonly reported: number
  readonly failed: number
  /** Of the failures since the evidence began, those heard when their answer was already mature. */
  readonly late: number
  readonly bets: ServedEvidence
}

/** Evidence that begins now. */
export const matureFrom = ({
  reported,
  failed,
  upTo,
}: Pick<MatureEvidence, 'reported' | 'failed' | 'upTo'>): MatureEvidence => ({
  ...(upTo && { upTo }),
  outcomes: 0,
  reported,
  failed,
  late: 0,
  bets: servedFrom(failed),
})

export const isWithin = (place: AnswerPlace, upTo: AnswerPlace) =>
  place.answeredMs < upTo.answeredMs || (place.answeredMs === upTo.answeredMs && place.traceId <= upTo.traceId)

/** Behind every trace id. */
export const LAST_ID = '\uffff'

export function addMature(mature: MatureEvidence, heard: OutcomeChange, claim: ServedClaim): MatureEvidence {
  const by = (count: (turn: Turn) => boolean) => Number(count(heard.to)) - Number(count(heard.from))
  return {
    ...mature,
    outcomes: Math.max(0, mature.outcomes + by(turn => turn !== undefined)),
    reported: mature.reported + by(turn => turn !== undefined),
    failed: mature.failed + by(turn => turn === 'fail'),
    bets: addServed(mature.bets, heard, claim),
  }
}
