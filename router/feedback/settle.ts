import { toHex, utf8 } from '../../shared/sign/bytes.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type Sealed, seal } from '../../shared/sign/record-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Feedback, FeedbackRecord, FeedbackResult, Verdict } from '../../shared/wire/router/feedback.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import {
  type Live,
  liveCalibration,
  type Matureness,
  newStored,
  type StoredCalibration,
} from '../calibrate/calibration.ts'
import { turnOf } from '../calibrate/calibration-store.ts'
import { PairWindow } from '../calibrate/pair-window.ts'
import type { RouteRef } from '../calibrate/route-cache.ts'
import type { Calibration } from '../config/routing-config.ts'

/** One report, as it waits for its commit. */
export interface Report {
  readonly subject: Subject
  readonly given: Feedback
  readonly feedbackId: string
  readonly at: Date
}

/** How many reporters last said so about a trace, and its place among the scored answers of its route. */
export interface Tally {
  readonly routeFp: string
  readonly ix: number | null
  readonly rung: number
  readonly score: number | null
  readonly fails: number
  readonly passes: number
}

/** What the store holds about what the reports are about. */
export interface Known {
  /** The end of each tenant's chain. */
  readonly heads: ReadonlyMap<string, Sealed>
  /** By `wordKey`: the last word of a reporter on a gate of a trace. */
  readonly words: ReadonlyMap<string, FeedbackRecord>
  /** By `traceKey`. */
  readonly tallies: ReadonlyMap<string, Tally>
  /** By `routeKey`. */
  readonly calibrations: ReadonlyMap<string, KnownCalibration>
}

export interface KnownCalibration {
  readonly kept: StoredCalibration
  readonly window: PairWindow
  /** Undefined where it was not looked for. */
  readonly matureness: Matureness | undefined
}

export interface Settled {
  readonly results: Omit<FeedbackResult, 'serve_threshold'>[]
  readonly records: FeedbackRecord[]
  readonly tallies: ReadonlyMap<string, { subject: Subject; session: string; tally: Tally }>
  readonly calibrations: ReadonlyMap<string, { tenantId: string; routeFp: string; live: Live }>
}

export const wordKey = (
  { tenantId, traceId }: Subject,
  { gate_id, reporter }: Pick<Feedback, 'gate_id' | 'reporter'>,
) => JSON.stringify([tenantId, traceId, gate_id, reporter])
export const traceKey = (tenantId: string, traceId: string) => `${tenantId} ${traceId}`
export const routeKey = (tenantId: string, routeFp: string) => `${tenantId} ${routeFp}`

export interface SettleOptions {
  settings: Calibration
  sha256: Sha256
  /** Routes without a report whose answers have become mature. */
  aged?: readonly { tenantId: string; routeFp: string }[]
}

/**
 * What a lot of reports comes to, in their order: rows of the chains, and thresholds and certificates after them. Nothing is changed
 * here that was given, so a lot whose commit was refused can be settled again on what the store holds by then.
 */
export function settle(
  reports: readonly Report[],
  known: Known,
  { settings, sha256, aged = [] }: SettleOptions,
): Settled {
  const heads = new Map<string, Sealed>()
  const words = new Map<string, FeedbackRecord>()
  const tallies = new Map<string, { subject: Subject; session: string; tally: Tally }>()
  const calibrations = new Map<string, { tenantId: string; routeFp: string; live: Live }>()
  const records: FeedbackRecord[] = []

  function liveOf(tenantId: string, routeFp: string): Live {
    const key = routeKey(tenantId, routeFp)
    const made = calibrations.get(key)
    if (made !== undefined) return made.live
    const stored = known.calibrations.get(key)
    const live = liveCalibration(
      stored?.kept ?? newStored(settings),
      stored?.window ?? new PairWindow(settings.window),
      settings,
    )
    if (stored?.matureness) live.mature(stored.matureness)
    calibrations.set(key, { tenantId, routeFp, live })
    return live
  }

  function count(subject: Subject, before: Verdict | undefined, verdict: Verdict): void {
    const { tenantId, traceId, answeredMs, served } = subject
    const session = sessionName(subject.sessionId, sha256)
    const key = traceKey(tenantId, traceId)
    const old = tallies.get(key)?.tally ?? known.tallies.get(key) ?? (served && firstTally(served))
    if (old === undefined) return
    const by = (word: Verdict) => Number(verdict === word) - Number(before === word)
    const now = { ...old, fails: old.fails + by('fail'), passes: old.passes + by('pass') }
    const ix = liveOf(tenantId, old.routeFp).apply({
      score: old.score,
      ix: old.ix,
      answer: { answeredMs, traceId },
      session,
      from: turnOf(old),
      to: turnOf(now),
    })
    tallies.set(key, { subject, session, tally: { ...now, ix } })
  }

  const results = reports.map(({ subject, given, feedbackId, at }): Settled['results'][number] => {
    const { tenantId, traceId } = subject
    const { gate_id, reporter, verdict, score } = given
    const key = wordKey(subject, given)
    const last = words.get(key) ?? known.words.get(key)
    const result = { trace_id: traceId, gate_id, verdict }
    if (last?.verdict === verdict && last.score === score) {
      return { status: 'duplicate', feedback_id: last.feedback_id, ...result }
    }
    const record = seal(
      {
        v: 1 as const,
        tenant_id: tenantId,
        feedback_id: feedbackId,
        trace_id: traceId,
        gate_id,
        reporter,
        verdict,
        ...(score !== undefined && { score }),
        ts: at.toISOString(),
        ...(last && { supersedes: last.feedback_id }),
      },
      heads.get(tenantId) ?? known.heads.get(tenantId),
      sha256,
    )
    records.push(record)
    heads.set(tenantId, record)
    words.set(key, record)
    count(subject, last?.verdict, verdict)
    return { status: last ? 'updated' : 'recorded', feedback_id: feedbackId, ...result }
  })
  for (const { tenantId, routeFp } of aged) liveOf(tenantId, routeFp)
  return { results, records, tallies, calibrations }
}

/** Enough to tell the newest sessions of a route apart. */
const sessionName = (id: string, sha256: Sha256) => toHex(sha256(utf8(id))).slice(0, 8)

function firstTally({ route, rung, score }: NonNullable<Subject['served']>): Tally {
  return { routeFp: route.fingerprint, ix: null, rung, score, fails: 0, passes: 0 }
}

/** A record as it is stored and exported. */
export const recordText = (record: FeedbackRecord): string => canonicalize(record)

/** What an outcome says something about. */
export interface Subject {
  readonly tenantId: string
  readonly traceId: string
  readonly sessionId: string
  /** When its call began. */
  readonly answeredMs: number
  /** Undefined where an outcome moves no threshold: nothing was decided or served, or the route is no longer known. */
  readonly served: { readonly route: RouteRef; readonly rung: number; readonly score: number | null } | undefined
}

/** The answer that an outcome is about (docs/spec/router.md §2.4): that of an enforced call that served something. */
export function servedAnswer({ mode, attempts, final }: UnsealedTrace) {
  if (mode !== 'enforce' || (final.served_from !== 'attempt' && final.served_from !== 'best_attempt')) return undefined
  // A rung is called again only after a call that gave no answer, so the last one is the one that was served.
  const served = attempts.findLast(({ rung, error_class }) => rung === final.served_rung && error_class === undefined)
  return served && { rung: served.rung, score: served.score }
}
