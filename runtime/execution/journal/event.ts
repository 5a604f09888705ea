import { readJson } from '../../../shared/json/read-json.ts'
import { fromHex } from '../../../shared/sign/bytes.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { genesisText } from '../../../shared/sign/journal-walk.ts'
import { type Sha256, sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import type { EventKind, EventMeta, JournalExport } from '../../../shared/wire/runtime/journal.ts'

/** An event before it has its place in the chain. */
export interface EventDraft {
  kind: EventKind
  stepId: string
  attempt: number
  payload: Readonly<Record<string, unknown>>
  meta?: EventMeta
}

export interface JournalEntry extends Required<EventDraft> {
  seq: number
  runId: string
  at: string
  hash: string
}

/** An entry and the canonical text of its hashed members, which is what the store keeps. */
export interface SealedEvent {
  entry: JournalEntry
  body: string
}

export interface ChainHead {
  seq: number
  hash: string
}

export function genesis(runId: string, hash: Sha256 = sha256): ChainHead {
  return { seq: 0, hash: journalGenesis(runId, hash) }
}

/** Gives the draft the place after `head` (docs/spec/proof.md): the text is made once, for the hash and for the store. */
export function sealEvent(
  head: ChainHead,
  runId: string,
  { kind, stepId, attempt, payload, meta = {} }: EventDraft,
  at: Date,
  hash: Sha256 = sha256,
): SealedEvent {
  // In the order of the canonical text, which spares its maker the sorting.
  const hashed = { at: at.toISOString(), attempt, kind, meta, payload, runId, seq: head.seq + 1, stepId }
  const body = canonicalize(hashed)
  return { entry: { ...hashed, hash: linkHash(head.hash, body, hash) }, body }
}

/** h_n from h_{n-1} and the canonical text of event n. */
export function linkHash(previous: string, body: string, hash: Sha256): string {
  return sha256Hex(body, hash, fromHex(previous))
}

/** A stored event as it was: the members come from the text under the hash, never from columns beside it. */
export function readEvent(body: string, hash: string): JournalEntry {
  return { ...(readJson(body) as Omit<JournalEntry, 'hash'>), hash }
}

/** h_0: the head of a run that has no events. */
export function journalGenesis(runId: string, hash: Sha256 = sha256): string {
  return sha256Hex(genesisText(runId), hash)
}

type ExportedEntry = JournalExport['events'][number] | { readonly hash: string }

/** The text of an exported journal in pieces: what is known of its end stands behind its entries, and no reader has to hold them all. */
export async function* journalDocument(
  about: Pick<JournalExport, 'runId' | 'chain' | 'genesis' | 'sealed'>,
  pages: AsyncIterable<readonly ExportedEntry[]>,
): AsyncGenerator<string> {
  let head = about.genesis
  let eventCount = 0
  yield `${JSON.stringify(about).slice(0, -1)},"events":[`
  for await (const page of pages) {
    yield `${eventCount > 0 ? ',' : ''}${page.map(entry => JSON.stringify(entry)).join(',')}`
    head = page.at(-1)?.hash ?? head
    eventCount += page.length
  }
  yield `],"head":${JSON.stringify(head)},"eventCount":${eventCount}}`
}
