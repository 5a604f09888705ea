import { canonicalize } from './jcs.ts'

/** The members under the hash, exactly (chain `sha256-v1`). */
export interface HashedEvent {
  seq: number
  kind: string
  stepId: string
  runId: string
  attempt: number
  at: string
  payload: unknown
  meta: unknown
}

export interface ChainedEvent extends HashedEvent {
  hash: string
}

export type JournalCheck =
  | { ok: true; head: string; count: number }
  | { ok: false; brokenAt: number; reason: 'seq' | 'run' | 'hash' | 'shape' }

/** Bytes in lower hex and the text behind them, of which the walk is handed the SHA-256 in lower hex. */
export interface ToHash {
  before: string
  text: string
}

export const genesisText = (runId: string): string => 'waybill/journal/v1\n' + runId

/** Aliases and other members of the event do not enter. */
export function hashedText({ seq, kind, stepId, runId, attempt, at, payload, meta }: HashedEvent): string {
  return canonicalize({ seq, kind, stepId, runId, attempt, at, payload, meta })
}

/**
 * Recomputes the whole chain; `brokenAt` is the sequence number that should have stood there. What is to be hashed is yielded, so that
 * one walk serves a host whose hash answers at once and a browser, whose hash does not.
 */
export function* journalWalk(runId: string, events: Iterable<ChainedEvent>): Generator<ToHash, JournalCheck, string> {
  let head = yield { before: '', text: genesisText(runId) }
  let count = 0
  for (const event of events) {
    const brokenAt = count + 1
    if (event.runId !== runId) return { ok: false, brokenAt, reason: 'run' }
    if (event.seq !== brokenAt) return { ok: false, brokenAt, reason: 'seq' }
    let text: string
    try {
      text = hashedText(event)
    } catch {
      return { ok: false, brokenAt, reason: 'shape' }
    }
    const expected = yield { before: head, text }
    if (event.hash !== expected) return { ok: false, brokenAt, reason: 'hash' }
    head = expected
    count = brokenAt
  }
  return { ok: true, head, count }
}
