import { fromHex } from '../bytes.ts'
import { type ChainedEvent, type HashedEvent, hashedText, type JournalCheck, journalWalk } from '../journal-walk.ts'
import { sha256Hex } from '../sha256.ts'

/** h_n from h_{n-1}. */
export function journalHash(previous: string, event: HashedEvent): string {
  return sha256Hex(hashedText(event), undefined, fromHex(previous))
}

/** The walk of every verifier, where the hash answers at once. */
export function checkJournal(runId: string, events: Iterable<ChainedEvent>): JournalCheck {
  const walk = journalWalk(runId, events)
  for (let step = walk.next(); ; ) {
    if (step.done) return step.value
    const { before, text } = step.value
    step = walk.next(sha256Hex(text, undefined, fromHex(before)))
  }
}
