import type { Calibration as Settings } from '../config/routing-config.ts'
import { adaptiveConformal, type Turn } from './adaptive-conformal.ts'
import { binomialTail, trialsNeeded } from './binomial.ts'
import { lttCertificate, type Pair, tieGroups } from './certify-threshold.ts'
import { addEvidence, correctEvidence, type Evidence, evidentThreshold, NO_EVIDENCE } from './e-process.ts'
import type { PairWindow } from './pair-window.ts'
import {
  type AnswerPlace,
  addMature,
  addServed,
  isServedEvidenceEnough,
  isWithin,
  type MatureEvidence,
  matureFrom,
  type OutcomeChange,
  type ServedEvidence,
  servedFrom,
} from './served-evidence.ts'

/** Pairs between two runs of the certification (docs/spec/router.md §7.3). */
export const CERTIFY_EVERY = 50

/** What is kept of a route of a tenant; with the window, everything that the next outcome needs (docs/spec/router.md §7.4). */
export interface StoredCalibration {
  /** The adaptive threshold. */
  t: number
  /** Places given to scored answers; the next one's `ix`. */
  places: number
  /** Scored answers with an outcome, and the failures of them. */
  n: number
  failures: number
  /** Served answers with an outcome, scored or not, and the failures of them. */
  reported: number
  failed: number
  evidence: Evidence
  /** Of everything that was served; missing in what an older version left, which counted answers of one session as independent. */
  servedBets?: ServedEvidence
  /** Missing where `feedbackDelayMs` is 0: then everything counts as it is heard. */
  mature?: MatureEvidence
  /** What certificate and evidence were computed with; with other settings they say nothing. */
  alpha: number
  delta: number
  bet: number
  window: number
  /** Missing in what an older version left, which counted every outcome as it was heard. */
  feedbackDelayMs?: number
  /** `places` at the last run of the certification. */
  certifiedAt: number
  /** Answers that score this or more were certified. */
  certifiedLambda: number | null
  /** The first score below that did not pass; null when all did. */
  failedLambda: number | null
  pValue: number | null
  /** Answers of the window that score `certifiedLambda` or more, and the failures of them, kept up to date with each. */
  guardN: number
  guardFailures: number
  /** It had a certificate, and later answers spoke against it. */
  lost: boolean
  /** Set by `router calibrate --apply`; holds until it is taken back. */
  pinned: number | null
}

const UNCERTIFIED = { certifiedLambda: null, failedLambda: null, pValue: null, guardN: 0, guardFailures: 0 }

export function newStored({ initial, alpha, delta, bet, window, feedbackDelayMs }: Settings): StoredCalibration {
  return {
    t: initial,
    places: 0,
    n: 0,
    failures: 0,
    reported: 0,
    failed: 0,
    evidence: NO_EVIDENCE,
    servedBets: servedFrom(0),
    ...(feedbackDelayMs > 0 && { mature: matureFrom({ reported: 0, failed: 0 }) }),
    alpha,
    delta,
    bet,
    window,
    feedbackDelayMs,
    certifiedAt: 0,
    ...UNCERTIFIED,
    lost: false,
    pinned: null,
  }
}

/** One served answer whose outcome is now known, corrected or withdrawn. */
export interface Change extends OutcomeChange {
  /** null where no gate gave a score: such an answer teaches no threshold. */
  score: number | null
  /** Its place among the scored answers if it has one. */
  ix: number | null
  /** Its place among all answers. */
  answer: AnswerPlace
}

/** An outcome whose answer has become mature. */
export interface Matured {
  readonly session: string
  readonly to: Turn
}

/** The answers that have become mature since the last look, and how far that reaches. */
export interface Matureness {
  readonly outcomes: readonly Matured[]
  readonly upTo: AnswerPlace
}

/** Looks at the clock in the time that an answer takes to become mature. */
const LOOKS = 256

/**
 * Which answers to look for: those after `from` that began at `toMs` or before. Undefined where it is too early to look again, or every
 * outcome counts as it is heard. Without `from` the evidence begins here, and nothing is to be looked for.
 */
export function maturing(
  kept: StoredCalibration,
  settings: Settings,
  nowMs: number,
): { from: AnswerPlace | undefined; toMs: number } | undefined {
  const { feedbackDelayMs } = settings
  if (feedbackDelayMs === 0) return undefined
  const toMs = nowMs - feedbackDelayMs
  const from = sameClaim(kept, settings) ? kept.mature?.upTo : undefined
  if (from !== undefined && toMs - from.answeredMs < feedbackDelayMs / LOOKS) return undefined
  return { from, toMs }
}

export type Live = ReturnType<typeof liveCalibration>

/**
 * The state of one route of one tenant as it moves. Takes what is kept and works on a copy, so that a commit that fails
 * leaves nothing behind. A change takes a fixed number of steps, and each 50 pairs a sort of the window.
 */
export function liveCalibration(given: StoredCalibration, window: PairWindow, settings: Settings) {
  const { alpha, delta, bet, gamma, minN } = settings
  const kept: StoredCalibration = { ...given }
  const pairs = window.copy()
  if (!sameClaim(kept, settings)) {
    const { feedbackDelayMs } = settings
    Object.assign(kept, { alpha, delta, bet, window: settings.window, feedbackDelayMs, ...UNCERTIFIED })
    kept.evidence = NO_EVIDENCE
    kept.servedBets = servedFrom(kept.failed)
    delete kept.mature
    if (feedbackDelayMs > 0) kept.mature = matureFrom({ reported: kept.reported, failed: kept.failed })
    kept.certifiedAt = Math.min(kept.certifiedAt, kept.places - CERTIFY_EVERY)
  }

  function watch({ score, failed }: Pair, by: 1 | -1): void {
    if (kept.certifiedLambda === null || score < kept.certifiedLambda) return
    kept.guardN += by
    if (failed) kept.guardFailures += by
  }

  function place(ix: number, score: number, to: Turn): void {
    const { taken, before } = pairs.put(ix, score, to)
    if (!taken) return
    if (before) watch(before, -1)
    if (to !== undefined) watch({ score, failed: to === 'fail' }, 1)
  }

  function certify(): void {
    const { passed, failed } = lttCertificate(tieGroups(pairs.pairs()), { alpha, delta, minN })
    kept.certifiedAt = kept.places
    kept.certifiedLambda = passed?.lambda ?? null
    kept.failedLambda = passed === undefined ? null : (failed?.lambda ?? null)
    kept.pValue = passed?.p ?? null
    kept.guardN = passed?.n ?? 0
    kept.guardFailures = passed?.failures ?? 0
  }

  /** The exact bound of the rate passes alpha just where this tail passes delta. */
  function checkGuard(): void {
    if (kept.certifiedLambda === null || binomialTail(kept.guardN, kept.guardFailures, alpha) <= delta) return
    Object.assign(kept, UNCERTIFIED)
  }

  /** A lost claim starts over, with the outcomes that count from now on. */
  function claimAfter(stood: boolean): void {
    const isClaimed = stands(kept)
    if (stood && !isClaimed) {
      kept.servedBets = servedFrom(kept.failed)
      if (kept.mature) kept.mature = matureFrom(kept.mature)
    }
    kept.lost = !isClaimed && (kept.lost || stood)
  }

  return {
    /** Gives the place of the answer among the scored ones. */
    apply(change: Change): number | null {
      if (change.from === change.to) return change.ix
      const stood = stands(kept)
      const own = count(change)
      claimAfter(stood)
      return own
    },
    mature({ outcomes, upTo }: Matureness): void {
      for (const { session, to } of outcomes) {
        const stood = stands(kept)
        if (kept.mature) kept.mature = addMature(kept.mature, { session, from: undefined, to }, settings)
        claimAfter(stood)
      }
      if (kept.mature) kept.mature = { ...kept.mature, upTo }
    },
    kept: kept as Readonly<StoredCalibration>,
    pairs,
  }

  function count({ score, ix, answer, session, from, to }: Change): number | null {
    const counts = (turn: Turn) => (turn === undefined ? 0 : 1)
    const fails = (turn: Turn) => (turn === 'fail' ? 1 : 0)
    const bets = kept.servedBets ?? servedFrom(kept.failed)
    kept.reported += counts(to) - counts(from)
    kept.failed += fails(to) - fails(from)
    kept.servedBets = addServed(bets, { session, from, to }, settings)
    if (kept.mature?.upTo && isWithin(answer, kept.mature.upTo)) {
      const { late } = kept.mature
      kept.mature = { ...addMature(kept.mature, { session, from, to }, settings), late: late + fails(to) }
    }
    if (score === null) return ix
    kept.n += counts(to) - counts(from)
    kept.failures += fails(to) - fails(from)
    kept.t = adaptiveConformal(kept.t, from, to, { alpha, gamma })
    kept.evidence = evidenceAfter(kept.evidence, score, from, to)
    const own = ix ?? kept.places++
    place(own, score, to)
    const first = Math.max(minN, trialsNeeded(0, alpha, delta))
    const due = kept.places - kept.certifiedAt >= CERTIFY_EVERY
    if (ix === null && (due || kept.places === first)) certify()
    checkGuard()
    return own
  }

  function evidenceAfter(evidence: Evidence, score: number, from: Turn, to: Turn): Evidence {
    const failed = to === 'fail'
    if (from === undefined) return addEvidence(evidence, { score, failed }, settings)
    return correctEvidence(
      evidence,
      { score, failed: from === 'fail' },
      to === undefined ? undefined : failed,
      settings,
    )
  }
}

/** The threshold that calibration gives a route; null where none is in use. */
export function calibratedThreshold(kept: StoredCalibration | undefined, settings: Settings): number | null {
  if (kept?.pinned != null) return kept.pinned
  switch (settings.method) {
    case 'off':
      return null
    case 'fixed':
      return settings.initial
    case 'aci':
      return kept?.t ?? settings.initial
    case 'eprocess':
      if (kept === undefined || !sameClaim(kept, settings)) return settings.initial
      return evidentThreshold(kept.evidence, settings) ?? settings.initial
  }
}

/**
 * Whether a route is certified. Two things must hold: the evidence over all that was served stands, which is what the claim rests on and
 * holds at every look; and the newest scored answers do not speak against it, with a threshold that lets through no scores
 * which failed their test.
 */
export function isCertified(
  kept: StoredCalibration | undefined,
  settings: Settings,
  threshold: number | null,
): boolean {
  if (kept === undefined || !sameClaim(kept, settings) || !stands(kept)) return false
  if (countedOutcomes(kept, settings) < settings.minN) return false
  return kept.failedLambda === null || (threshold !== null && threshold > kept.failedLambda)
}

/** Outcomes that count for a certificate under these settings. */
export function countedOutcomes(kept: StoredCalibration | undefined, settings: Settings): number {
  if (kept === undefined || !sameClaim(kept, settings)) return 0
  return kept.mature?.outcomes ?? kept.reported
}

function stands(kept: StoredCalibration): boolean {
  const agrees = kept.certifiedLambda !== null || kept.n === 0
  const { servedBets, mature } = kept
  return (
    agrees &&
    servedBets !== undefined &&
    isServedEvidenceEnough(servedBets) &&
    (!mature || isServedEvidenceEnough(mature.bets))
  )
}

function sameClaim(kept: StoredCalibration, { alpha, delta, bet, window, feedbackDelayMs }: Settings): boolean {
  return (
    kept.alpha === alpha &&
    kept.delta === delta &&
    kept.bet === bet &&
    kept.window === window &&
    (kept.feedbackDelayMs ?? 0) === feedbackDelayMs
  )
}
