import { fromHex, toHex, utf8 } from './bytes.ts'
import { canonicalize } from './jcs.ts'
import { type Sha256, sha256, sha256Hex } from './sha256.ts'

/** The members under the hash, exactly (runtime contract §5, chain `sha256-v1`). */
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

/** h_0: the head of a run that has no events. */
export function journalGenesis(runId: string, hash: Sha256 = sha256): string {
  return toHex(hash(utf8('waybill/journal/v1\n' + runId)))
}

/** h_n from h_{n-1}; aliases and other members of the event do not enter. */
export function journalHash(previous: string, event: HashedEvent, hash: Sha256 = sha256): string {
  const { seq, kind, stepId, runId, attempt, at, payload, meta } = event
  const body = canonicalize({ seq, kind, stepId, runId, attempt, at, payload, meta })
  return sha256Hex(body, hash, fromHex(previous))
}

/** Recomputes the whole chain; `brokenAt` is the sequence number that should have stood there. */
export function checkJournal(runId: string, events: Iterable<ChainedEvent>, hash: Sha256 = sha256): JournalCheck {
  let head = journalGenesis(runId, hash)
  let count = 0
  for (const event of events) {
    const brokenAt = count + 1
    if (event.runId !== runId) return { ok: false, brokenAt, reason: 'run' }
    if (event.seq !== brokenAt) return { ok: false, brokenAt, reason: 'seq' }
    let expected: string
    try {
      expected = journalHash(head, event, hash)
    } catch {
      return { ok: false, brokenAt, reason: 'shape' }
    }
    if (event.hash !== expected) return { ok: false, brokenAt, reason: 'hash' }
    head = expected
    count = brokenAt
  }
  return { ok: true, head, count }
}
