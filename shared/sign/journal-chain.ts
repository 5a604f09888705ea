import { fromHex } from './bytes.ts'
import {
  type ChainedEvent,
  genesisText,
  type HashedEvent,
  hashedText,
  type JournalCheck,
  journalWalk,
} from './journal-walk.ts'
import { type Sha256, sha256, sha256Hex } from './sha256.ts'

/** h_0: the head of a run that has no events. */
export function journalGenesis(runId: string, hash: Sha256 = sha256): string {
  return sha256Hex(genesisText(runId), hash)
}

/** h_n from h_{n-1}. */
export function journalHash(previous: string, event: HashedEvent, hash: Sha256 = sha256): string {
  return sha256Hex(hashedText(event), hash, fromHex(previous))
}

/** The walk where the hash answers at once. */
export function checkJournal(runId: string, events: Iterable<ChainedEvent>, hash: Sha256 = sha256): JournalCheck {
  const walk = journalWalk(runId, events)
  for (let step = walk.next(); ; ) {
    if (step.done) return step.value
    const { before, text } = step.value
    step = walk.next(sha256Hex(text, hash, fromHex(before)))
  }
}
