import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { FeedbackResult } from '../../shared/wire/router/feedback.ts'
import { calibrationCache } from '../calibrate/calibration-cache.ts'
import { routeCache } from '../calibrate/route-cache.ts'
import type { Calibration } from '../config/routing-config.ts'
import { feedbackWriter } from './feedback-writer.ts'
import { type SubmitDeps, submitFeedback } from './submit-feedback.ts'

const AGE_EVERY_MS = 1000

export interface KeepFeedbackDeps {
  db: Db
  clock: Clock
  log: Log
  sha256: Sha256
  settings: () => Calibration
  find: SubmitDeps['find']
  counted?: (result: FeedbackResult) => void
}

/** Everything between a report and its rows: for a running router, and for a program that has only its store. */
export async function keepFeedback(deps: KeepFeedbackDeps) {
  const { db, clock, settings, sha256, counted = () => undefined } = deps
  const book = calibrationCache(deps)
  await book.refresh()
  const routes = routeCache(deps)
  const writer = feedbackWriter({ db, book, settings, now: clock.now, monotonic: clock.monotonic, sha256 })
  let agedAt = Number.NEGATIVE_INFINITY
  let aging: Promise<void> | undefined

  /** Counts what is old enough by now, in the background, and at most once a second. */
  function ageSoon(): void {
    if (aging !== undefined || clock.monotonic() - agedAt < AGE_EVERY_MS) return
    agedAt = clock.monotonic()
    aging = writer
      .age()
      .catch((error: unknown) => {
        deps.log.warn('outcomes that are old enough could not be counted for certificates; it is tried again', {
          error,
        })
      })
      .finally(() => {
        aging = undefined
      })
  }

  return {
    ageSoon,
    submit: submitFeedback({
      find: deps.find,
      routes,
      writer,
      book,
      settings,
      counted,
      now: clock.now,
      newId: uuidv7,
    }),
    book,
    routes,
    /** Resolves when what was taken is kept. */
    async close(): Promise<void> {
      await aging
      await writer.close()
    },
  }
}
