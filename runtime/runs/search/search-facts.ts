import { utf8 } from '../../../shared/sign/bytes.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { isTerminal, type RunListQuery } from '../../../shared/wire/runtime/run.ts'

/** What of a run a list may be narrowed by, from its row. */
export interface FactsOfRun {
  tenant_id: string
  status: string
  trigger_kind: string
  finished_ms: number | null
}

const OPEN = 'sopen'
/** Of every run but the turns of sessions, and of those that no other run started. */
const [LISTED, UNFOLDED] = ['klisted', 'kunfolded']

/** The word under which the index keeps the runs of a tenant apart; letters and digits alone, whatever a tenant's id is. */
export const tenantWord = (tenantId: string): string => `t${sha256Hex(utf8(tenantId)).slice(0, 24)}`

/**
 * The words of the index that a search is narrowed by before it reads a run: without them a page of a common word would read every run that
 * has it.
 */
export function factWords({ tenant_id, status, trigger_kind, finished_ms }: FactsOfRun): string {
  const words = [tenantWord(tenant_id), finished_ms === null ? OPEN : `s${status}`, `k${trigger_kind}`]
  if (trigger_kind !== 'session') words.push(LISTED)
  if (trigger_kind !== 'session' && trigger_kind !== 'subagent') words.push(UNFOLDED)
  return words.join(' ')
}

/** Those that every run of a list has. */
export function factsAsked(tenantId: string, query: RunListQuery): string[] {
  const { status, trigger, sessionId, errorCode, subRuns } = query
  const words = [tenantWord(tenantId)]
  if (status !== undefined) words.push(isTerminal(status) ? `s${status}` : OPEN)
  if (trigger !== undefined) words.push(`k${trigger}`)
  else if (sessionId === undefined && errorCode === undefined) words.push(subRuns === 'folded' ? UNFOLDED : LISTED)
  return words
}

/** Entries of the index of words that one millisecond has room for. */
export const DOCS_OF_MS = 1_048_576

/** Tells the entries of runs of one millisecond apart: twenty bits of the FNV-1a hash of the id. */
export function docNumber(id: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 20)) & 0xfffff
}
