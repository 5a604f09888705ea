import type { Accepted } from '../../models/model-table.ts'
import type { DialectName } from '../candidate.ts'
import { ASSISTANT_FILLER, NO_SIGNATURE, NO_THOUGHT, shortCallId } from '../chat/answer.ts'
import { type CutItem, cutsOf } from '../json-cut.ts'
import { atArray, atObject, eachItem, eachMember, keyTable, readName, readSpan } from '../json-members.ts'
import { type Cursor, cursor, type Span, spanText } from '../json-scan.ts'
import { asArray, asObject, type Json, tryParse } from '../json-value.ts'
import { MOST_CALL_IDS, MOST_SETTINGS, MOST_SYSTEM_TURNS, type RequestFacts } from '../request-facts.ts'
import { type Change, type Draft, draft } from './draft.ts'
import { adaptMessages } from './messages-settings.ts'
import { adaptChat, adaptResponses } from './openai-settings.ts'
import { refusedNames, valueUnder } from './refused-value.ts'
import type { Edit } from './splice.ts'

/** What has to be known of a request. */
export type AdaptFacts = Pick<
  RequestFacts,
  'settings' | 'openTurn' | 'systemRoles' | 'developerRoles' | 'afterTools' | 'callIds' | 'messages'
>

export interface AdaptInput {
  readonly body: Uint8Array
  readonly dialect: DialectName
  readonly facts: AdaptFacts
  readonly accepted: Accepted
  /** What this provider refused before: names of `ADVISORY`, or one value of such a setting (`refusalKey`). */
  readonly refused: ReadonlySet<string>
  readonly jsonByGate: boolean
  /** Thinking of earlier turns is cut out afterwards. */
  readonly stripsThinking?: boolean
}

export interface Adaptation {
  readonly edits: readonly Edit[]
  readonly changes: readonly Change[]
  /** The limit of the output, where it was brought down. */
  readonly maxTokens: number | undefined
}

const isFalse = (value: Json) => value === false
const isTrue = (value: Json) => value === true
const always = () => true

/**
 * Settings at the top of a request that a provider may do without: wishes and bookkeeping, or what says what holds anyway. What a request is
 * about (messages, tools, system, model, the form of the answer) is never among them.
 */
export const ADVISORY: Readonly<Record<string, (value: Json) => boolean>> = {
  thinking: always,
  context_management: always,
  temperature: always,
  top_p: always,
  top_k: always,
  presence_penalty: always,
  frequency_penalty: always,
  reasoning_effort: always,
  reasoning: always,
  verbosity: always,
  service_tier: always,
  speed: always,
  metadata: always,
  client_metadata: always,
  prompt_cache_key: always,
  prompt_cache_retention: always,
  safety_identifier: always,
  user: always,
  seed: always,
  store: isFalse,
  logprobs: isFalse,
  parallel_tool_calls: isTrue,
  // A host that does not know it counts in the last chunk unasked.
  stream_options: always,
  truncation: value => value === 'disabled',
}

/** How a request has to change for a model: a decision on facts, which touches no byte. */
export function adaptRequest(input: AdaptInput): Adaptation {
  const { body, dialect, facts, accepted, jsonByGate } = input
  if (facts.settings.length > MOST_SETTINGS) return { edits: [], changes: [], maxTokens: undefined }
  const book = draft(body, facts.settings)
  const refused = refusedNames(input.refused, path => valueUnder(path, book.value))
  for (const name of refused) {
    // What goes with thinking depends on whether it is on, so its rule decides.
    if (name === 'thinking' || name === 'context_management') continue
    const value = Object.hasOwn(ADVISORY, name) ? book.value(name) : undefined
    if (value !== undefined && ADVISORY[name]!(value)) book.remove(name, 'refused')
  }
  adaptTurns(book, input, refused)
  const afterPlainCalls = facts.openTurn === 'plain' || (facts.openTurn === 'thinking' && input.stripsThinking === true)
  const context = { body, accepted, refused, jsonByGate, afterPlainCalls }
  if (dialect === 'messages') adaptMessages(book, context)
  else if (dialect === 'chat') adaptChat(book, context)
  else adaptResponses(book, context)
  const { changes } = book
  // A limit that stays as it is may stand there twice, or mean none: the scan knows which one holds.
  const isCapped = changes.some(({ path, why }) => why === 'too_large' && path !== 'thinking')
  return {
    edits: changes.length === 0 ? [] : book.edits(),
    changes,
    maxTokens: isCapped ? accepted.maxOutput : undefined,
  }
}

/** Who speaks when, and how calls are named. */
function adaptTurns(
  book: Draft,
  { body, dialect, facts, accepted }: AdaptInput,
  refusedNames: ReadonlySet<string>,
): void {
  const { systemRoles = [], developerRoles = [], afterTools = [], callIds = [] } = facts
  const note = (path: string, to: string, edits: readonly Edit[], most: number, from?: string) => {
    if (edits.length === 0 || edits.length > most) return
    book.note({ path, ...(from !== undefined && { from }), to, why: 'unsupported' }, edits)
  }
  const become = (role: string) => (span: Span) => ({ ...span, text: JSON.stringify(role) })
  if (accepted.systemTurns === false)
    note('messages[].role', 'user', systemRoles.map(become('user')), MOST_SYSTEM_TURNS, 'system')
  if (accepted.developer === false)
    note('messages[].role', 'system', developerRoles.map(become('system')), MOST_SYSTEM_TURNS, 'developer')
  if (accepted.userAfterTool === false)
    note('messages[].role', 'assistant between', afterTools.map(answered), MOST_SYSTEM_TURNS, 'user after tool')
  if (accepted.shortCallIds === true && callIds.length <= MOST_CALL_IDS) {
    const edits = callIds.flatMap(span => shortened(body, span))
    note('messages[].tool_calls[].id', 'nine letters and digits', edits, MOST_CALL_IDS)
  }
  if (accepted.signedCalls === true && callIds.length <= MOST_CALL_IDS) {
    const edits = unsigned(body, facts.messages, callIds)
    note('messages[].tool_calls[].extra_content', 'no signature', edits, MOST_CALL_IDS)
  }
  if (dialect !== 'chat' || facts.messages === undefined) return
  const cut = refusedMembers(refusedNames)
  if (cut.length > 0) {
    const edits = cutFromTurns(body, facts.messages, cut)
    if (edits.length === 0 || edits.length > MOST_CALL_IDS) return
    for (const [at, name] of cut.entries())
      book.note({ path: `messages[].${name}`, to: null, why: 'refused' }, at === 0 ? edits : [])
  } else if (accepted.thoughtTurns === true)
    note('messages[].reasoning_content', 'no thoughts', addThoughts(body, facts.messages), MOST_CALL_IDS)
}

const answered = (at: number): Edit => ({ start: at, end: at, text: `${JSON.stringify(ASSISTANT_FILLER)},` })

const UNSIGNED = `,${JSON.stringify(NO_SIGNATURE).slice(1, -1)}`

/** Behind the ids of calls that say nothing of a signature. */
function unsigned(body: Uint8Array, messages: Span | undefined, ids: readonly Span[]): Edit[] {
  if (messages === undefined || ids.length === 0) return []
  const named = asArray(tryParse(spanText(body, messages)))
    .map(asObject)
    .flatMap(turn => [...asArray(turn.tool_calls).map(asObject), { id: turn.tool_call_id, extra_content: null }])
    .filter(({ id }) => typeof id === 'string')
  return ids.flatMap((span, at) =>
    named[at]?.extra_content === undefined && named[at]?.id === tryParse(spanText(body, span))
      ? [{ start: span.end, end: span.end, text: UNSIGNED }]
      : [],
  )
}

function shortened(body: Uint8Array, span: Span): Edit[] {
  const id = tryParse(spanText(body, span))
  const text = typeof id === 'string' ? JSON.stringify(shortCallId(id)) : undefined
  return text === undefined || text === spanText(body, span) ? [] : [{ ...span, text }]
}

/** What models write into their turns beside what they say, and other hosts refuse to be sent. */
const OWN = ['extra_content', 'reasoning_content', 'reasoning', 'reasoning_details'] as const
type Own = (typeof OWN)[number]

/** By this a refusal of such a member is remembered, beside those of settings. */
const keyOf = (name: Own): string => `messages[].${name}`

/** The member of a turn, or of a call in it, that the last part of a path names. */
export function refusedMember(path: string): string | undefined {
  const name = OWN.find(one => path === one || path.endsWith(`.${one}`))
  return name && keyOf(name)
}

const refusedMembers = (refused: ReadonlySet<string>): readonly Own[] => OWN.filter(name => refused.has(keyOf(name)))

const TURN = keyTable([...OWN, 'tool_calls'])
const THOUGHTS = keyTable(['role', 'reasoning_content'])
const ROLES = keyTable(['assistant'])
const NONE: ReadonlySet<string> = new Set(['null', '""'])

/** Cuts members of a turn out of it, and out of its calls. */
function cutFromTurns(body: Uint8Array, messages: Span, names: readonly Own[]): Edit[] {
  const edits: Edit[] = []
  const cutFrom = (c: Cursor, within: boolean): void => {
    if (!atObject(c)) return
    const members: CutItem[] = []
    eachMember(c, TURN, (key, start) => {
      if (key === 'tool_calls' && within && atArray(c)) eachItem(c, () => cutFrom(c, false))
      else readSpan(c)
      members.push({ start, end: c.at, drop: names.some(name => name === key) })
    })
    if (edits.length <= MOST_CALL_IDS) for (const cut of cutsOf(members)) edits.push({ ...cut, text: '' })
  }
  eachTurn(body, messages, c => cutFrom(c, true))
  return edits
}

/** Gives turns of the assistant that have no thoughts some that say nothing. */
function addThoughts(body: Uint8Array, messages: Span): Edit[] {
  const edits: Edit[] = []
  eachTurn(body, messages, c => {
    if (!atObject(c)) return
    const start = c.at + 1
    let said = false
    let given: Span | undefined
    eachMember(c, THOUGHTS, key => {
      if (key === 'role') said = readName(c, ROLES) !== undefined
      else if (key !== undefined) given = readSpan(c)
    })
    if (!said || edits.length > MOST_CALL_IDS) return
    const { reasoning_content: none } = NO_THOUGHT
    if (given === undefined) edits.push({ start, end: start, text: `${JSON.stringify(NO_THOUGHT).slice(1, -1)},` })
    else if (NONE.has(spanText(body, given))) edits.push({ ...given, text: JSON.stringify(none) })
  })
  return edits
}

function eachTurn(body: Uint8Array, { start, end }: Span, visit: (c: Cursor) => void): void {
  const c = cursor(body.subarray(0, end), start)
  if (atArray(c)) eachItem(c, () => visit(c))
}
