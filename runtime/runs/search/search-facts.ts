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
export function queriedFacts(tenantId: string, query: RunListQuery): string[] {
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

/** What a person types at once; more words than that narrow nothing down. */
const MOST_WORDS = 12
/** Shorter words are looked for as they are: as beginnings they would match nearly every run. */
const SHORTEST_BEGINNING = 3
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-([0-9a-f]{12})$/i

/** The part of a run's id that tells it from others. */
export const idWord = (id: string): string => id.slice(-12)

/**
 * What is searched for, in the syntax of FTS5; undefined where no word was typed. Each word is a quoted string, so that nothing in it is
 * read as an operator (https://www.sqlite.org/fts5.html#fts5_strings), and all of them have to be there. `known` are whole names that the runs
 * have in the index as well: they and `facts` narrow the search before a run is read.
 */
export function matchExpression(
  facts: readonly string[],
  typed: string,
  known: readonly (string | undefined)[] = [],
): string | undefined {
  const words = typed
    .toWellFormed()
    .replaceAll('\0', ' ')
    .split(/\s+/)
    .map(word => UUID.exec(word)?.[1] ?? word)
    // Without a letter or a digit there is nothing in the index that could be like it.
    .filter(word => /[\p{L}\p{N}]/u.test(word))
    .slice(0, MOST_WORDS)
  if (words.length === 0) return undefined
  // A name without a word in the index would find nothing there.
  const names = known
    .filter(name => name !== undefined)
    .filter(name => /[a-z0-9]/i.test(name))
    .map(name => quoted(name.toWellFormed().replaceAll('\0', ' ')))
  return `facts : (${facts.map(quoted).join(' AND ')}) AND words : (${[...words.map(asked), ...names].join(' AND ')})`
}

const asked = (word: string): string => quoted(word) + ([...word].length < SHORTEST_BEGINNING ? '' : ' *')

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`
