import { sha256 as portableSha256, type Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { dbFault, pause } from '../../shared/sql/db-fault.ts'
import { groupCommit } from '../../shared/sql/group-commit.ts'
import type { FeedbackResult } from '../../shared/wire/router/feedback.ts'
import { newStored } from '../calibrate/calibration.ts'
import type { CalibrationCache } from '../calibrate/calibration-cache.ts'
import { type Entry, readMatureness, routesWithMature } from '../calibrate/calibration-store.ts'
import { PairWindow } from '../calibrate/pair-window.ts'
import type { Calibration } from '../config/routing-config.ts'
import { commitSettled, readKnown } from './feedback-store.ts'
import { type Known, type KnownCalibration, type Report, routeKey, type Settled, settle } from './settle.ts'

export interface FeedbackWriterDeps {
  db: Db
  book: CalibrationCache
  settings: () => Calibration
  now: () => Date
  monotonic: () => number
  sha256?: Sha256
}

export type FeedbackWriter = ReturnType<typeof feedbackWriter>

/** Other processes that commit in between let a lot be settled anew; after this many times something else is wrong. */
const MAX_TRIES = 20

const MAX_PENDING = 4096
/**
 * Under load reports wait a moment for company: a commit of one takes as long as one of several. With 500 a second, 2 saves a tenth of the
 * main thread's time, and at 2 or 4 the slowest hundredth takes longer.
 */
const GATHER_MS = 1
const BUSY_MS = 10

type RouteOf = Pick<Entry, 'tenantId' | 'routeFp'>
type Learned = KnownCalibration & Pick<Entry, 'version'>

/** The other end of a lot: what its reports came to, and the calibration after it. */
export type Taken = Omit<FeedbackResult, 'serve_threshold'>

/**
 * The one writer of feedback in a process. What comes while a commit is on its way shares the next one; each is one transaction that
 * holds only if no other writer moved a chain or a threshold that it was made from.
 */
export function feedbackWriter({ db, book, settings, now, monotonic, sha256 = portableSha256 }: FeedbackWriterDeps) {
  async function attempt(reports: Report[], aged: readonly RouteOf[]): Promise<Taken[]> {
    const known = await readKnown(db, reports, book)
    const current = settings()
    const calibrations = new Map<string, Learned>()
    for (const { subject } of reports) await learn(subject.tenantId, routeOf(subject, known), current, calibrations)
    for (const { tenantId, routeFp } of aged) await learn(tenantId, routeFp, current, calibrations)
    const settled = settle(reports, { ...known, calibrations }, { settings: current, sha256, aged })
    if (settled.records.length > 0 || aged.length > 0) await commit(settled, calibrations)
    return settled.results
  }

  async function learn(
    tenantId: string,
    routeFp: string | undefined,
    current: Calibration,
    into: Map<string, Learned>,
  ): Promise<void> {
    if (routeFp === undefined || into.has(routeKey(tenantId, routeFp))) return
    const stored = book.toLearn(tenantId, routeFp)
    const entry = stored ?? { tenantId, routeFp, version: 0, kept: newStored(current) }
    const size = current.window
    const window = stored === undefined ? new PairWindow(size) : await book.window(stored, size)
    const matureness = await readMatureness(db, entry, current, now().getTime())
    into.set(routeKey(tenantId, routeFp), { version: entry.version, kept: entry.kept, window, matureness })
  }

  async function commit(settled: Settled, calibrations: ReadonlyMap<string, Learned>): Promise<void> {
    const changed = [...settled.calibrations].map(([key, { tenantId, routeFp, live }]) => {
      const version = calibrations.get(key)?.version ?? 0
      return { live, entry: { tenantId, routeFp, version, kept: live.kept } }
    })
    const entries = changed.map(({ entry }) => entry)
    const versions = await commitSettled(db, settled, entries, now())
    for (const [i, { entry, live }] of changed.entries()) book.put({ ...entry, version: versions[i]! }, live.pairs)
  }

  async function write(reports: Report[], aged: readonly RouteOf[] = []): Promise<Taken[]> {
    for (let tried = 1; ; tried++) {
      try {
        return await attempt(reports, aged)
      } catch (error) {
        book.forget()
        // A refused lot left nothing. Most likely another process was first, and then the next try builds on what it wrote.
        if (dbFault(error) !== 'statement' || !/constraint/i.test(String(error)) || tried >= MAX_TRIES) throw error
        if (tried > 1) await pause(Math.random() * 4 * tried)
      }
    }
  }

  let committedAt = Number.NEGATIVE_INFINITY
  const group = groupCommit<Report, Taken>({
    async write(reports) {
      const taken = await write(reports)
      committedAt = monotonic()
      return taken
    },
    maxRows: 256,
    maxPending: MAX_PENDING,
  })
  let gathering: Promise<void> | undefined
  let held = 0

  return {
    /** Resolves when the report is kept. */
    async append(report: Report): Promise<Taken> {
      const { tenantId, served } = report.subject
      // Before it shares a commit with reports that can be taken.
      if (served) book.toLearn(tenantId, served.route.fingerprint)
      if (monotonic() - committedAt < BUSY_MS && held + group.pending < MAX_PENDING) {
        gathering ??= pause(GATHER_MS).then(() => {
          gathering = undefined
          held = 0
        })
        held++
        await gathering
      }
      return group.append(report)
    },
    /** Counts the outcomes of answers that are old enough by now, where no report comes that would. */
    async age(): Promise<void> {
      const aged = await routesWithMature(db, [...book.all()], settings(), now().getTime())
      if (aged.length > 0) await write([], aged)
    },
    /** Takes no more reports and resolves when those taken are kept. */
    async close(): Promise<void> {
      // Who waits for company was first to wait, so it is in the group by then.
      await gathering
      await group.close()
    },
  }
}

/** The route whose calibration a report may move: the one it was counted for first, else that of its trace. */
function routeOf({ tenantId, traceId, served }: Report['subject'], { tallies }: Pick<Known, 'tallies'>) {
  return tallies.get(`${tenantId} ${traceId}`)?.routeFp ?? served?.route.fingerprint
}
