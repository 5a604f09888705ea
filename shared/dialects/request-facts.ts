import {
  atArray,
  atObject,
  atString,
  eachItem,
  eachMember,
  type KeyTable,
  keyTable,
  readName,
  readSpan,
} from './json-members.ts'
import { type Cursor, JsonSyntaxError, type Span } from './json-scan.ts'

/** The string literal of the top-level `model`, quotes included, and what it says. */
export interface ModelLiteral extends Span {
  readonly value: string
}

/** A member at the top of a request that says how to answer, and that some models do not take. */
export interface Setting {
  readonly name: string
  /** Where the member starts, with its name. */
  readonly start: number
  readonly value: Span
}

/** What the router needs to know about a request, read in one pass over its bytes. */
export interface RequestFacts {
  /** null when the member is missing or not a string; the last of several wins, as in JSON.parse. */
  readonly model: ModelLiteral | null
  readonly stream: boolean
  /** The client asked for the usage chunk (chat only). */
  readonly includeUsage: boolean
  readonly n: number
  readonly maxTokens: number | undefined
  readonly toolCount: number
  readonly imageCount: number
  /** Images, documents and audio: what is bounded by a price per item rather than by bytes. */
  readonly mediaCount: number
  readonly mediaBytes: number
  /** Those of documents, which are counted by the page. */
  readonly documentBytes: number
  readonly messageCount: number
  readonly hasThinkingHistory: boolean
  /** The last turn brings results of tools, for calls that came with thinking or without (messages only). */
  readonly openTurn?: 'plain' | 'thinking'
  /** Where messages among the turns say that they are the system's (messages only); more than `MOST_SYSTEM_TURNS` are not followed. */
  readonly systemRoles?: readonly Span[]
  /** Where messages say that they are the developer's (chat only), as `systemRoles`. */
  readonly developerRoles?: readonly Span[]
  /** Where messages of the user begin that follow right after the result of a tool (chat only), as many at most. */
  readonly afterTools?: readonly number[]
  /** The ids of calls, where they are made and where their results come (chat only); more than `MOST_CALL_IDS` are not followed. */
  readonly callIds?: readonly Span[]
  /** How it is to be answered: the members that a model may refuse, in the order of the body. */
  readonly settings: readonly Setting[]
  /** It fills the cache of its prompt and asks for no answer (messages only). */
  readonly onlyCaches?: boolean
  /** The client does not wait for the answer and asks for it later (responses only). */
  readonly background?: boolean
  readonly system: Span | undefined
  readonly messages: Span | undefined
  readonly tools: Span | undefined
  readonly firstUser: Span | undefined
}

export type ScanResult =
  | { readonly ok: true; readonly facts: RequestFacts }
  | { readonly ok: false; readonly message: string; readonly at: number }

/** Facts of the messages, or of the items of an `input`. */
export interface HistoryFacts {
  span: Span | undefined
  count: number
  firstUser: Span | undefined
  images: number
  media: number
  mediaBytes: number
  documentBytes: number
  thinking: boolean
  /** Whether the newest turn of the assistant holds thinking, and whether the newest turn brings results of tools. */
  thoughtLast: boolean
  endsWithResults: boolean
  systemRoles: Span[]
  callIds: Span[]
  developerRoles: Span[]
  afterTools: number[]
  lastRole: string | undefined
}

/** Which block types of a dialect mean what. */
export interface BlockKinds<N extends string> {
  readonly types: KeyTable<N>
  readonly images: ReadonlySet<string>
  readonly media: ReadonlySet<string>
  readonly document: N
  readonly thinking: ReadonlySet<string>
  /** Blocks that bring the result of a tool, where they stand in turns of the user. */
  readonly results?: ReadonlySet<string>
  /** Messages name their calls. */
  readonly callIds?: true
}

const MESSAGE = keyTable(['role', 'content', 'type', 'output'])
const CHAT_MESSAGE = keyTable(['role', 'content', 'type', 'output', 'tool_calls', 'tool_call_id'])
const CALL = keyTable(['id'])
const ROLES = keyTable(['user', 'assistant', 'system', 'developer', 'tool'])
export const MOST_SYSTEM_TURNS = 1000
export const MOST_CALL_IDS = 10_000
const BLOCK = keyTable(['type', 'content', 'source', 'image_url', 'input_audio', 'file', 'file_data'])
const SOURCE = keyTable(['type', 'content'])
const CODED = keyTable(['base64'])
/** message content, then the content of a tool result inside it; nothing below that holds media of its own. */
const BLOCK_LEVELS = 2

export const emptyHistory = (): HistoryFacts => ({
  span: undefined,
  count: 0,
  firstUser: undefined,
  images: 0,
  media: 0,
  mediaBytes: 0,
  documentBytes: 0,
  thinking: false,
  thoughtLast: false,
  endsWithResults: false,
  systemRoles: [],
  callIds: [],
  developerRoles: [],
  afterTools: [],
  lastRole: undefined,
})

/** Reads the `messages` value at the cursor. */
export function readHistory<N extends string>(c: Cursor, kinds: BlockKinds<N>): HistoryFacts {
  const facts = emptyHistory()
  if (!atArray(c)) return facts
  const start = c.at
  facts.count = eachItem(c, () => readMessage(c, kinds, facts))
  facts.span = { start, end: c.at }
  return facts
}

function readMessage<N extends string>(c: Cursor, kinds: BlockKinds<N>, facts: HistoryFacts): void {
  if (!atObject(c)) return
  const start = c.at
  let role: string | undefined
  const { thinking, endsWithResults } = facts
  facts.thinking = false
  facts.endsWithResults = false
  eachMember(c, kinds.callIds ? CHAT_MESSAGE : MESSAGE, key => {
    const from = c.at
    if (key === 'role') {
      role = readName(c, ROLES)
      const named = role === 'system' ? facts.systemRoles : role === 'developer' ? facts.developerRoles : undefined
      if (named !== undefined && named.length <= MOST_SYSTEM_TURNS) named.push({ start: from, end: c.at })
    } else if (key === 'tool_call_id') readCallId(c, facts)
    else if (key === 'tool_calls') readCalls(c, facts)
    else if (key === 'content' || key === 'output') readBlocks(c, kinds, facts, BLOCK_LEVELS)
    else if (key === 'type' && kinds.thinking.has(readName(c, kinds.types) ?? '')) facts.thinking = true
  })
  if (role === 'user' && facts.lastRole === 'tool' && facts.afterTools.length <= MOST_SYSTEM_TURNS)
    facts.afterTools.push(start)
  facts.lastRole = role
  if (role === 'user') facts.firstUser ??= { start, end: c.at }
  if (role === 'assistant') facts.thoughtLast = facts.thinking
  // A word of the system stands between two turns and is none.
  if (role === 'system') facts.endsWithResults = endsWithResults
  facts.thinking ||= thinking
}

function readCalls(c: Cursor, facts: HistoryFacts): void {
  if (!atArray(c)) return
  eachItem(c, () => {
    if (atObject(c)) eachMember(c, CALL, key => (key === 'id' ? readCallId(c, facts) : undefined))
  })
}

function readCallId(c: Cursor, { callIds }: HistoryFacts): void {
  if (atString(c) && callIds.length <= MOST_CALL_IDS) callIds.push(readSpan(c))
}

function readBlocks<N extends string>(c: Cursor, kinds: BlockKinds<N>, facts: HistoryFacts, levels: number): void {
  if (!atArray(c)) return
  eachItem(c, () => {
    if (!atObject(c)) return
    let type: string | undefined
    let coded = 0
    eachMember(c, BLOCK, key => {
      const start = c.at
      if (key === 'type') type = readName(c, kinds.types)
      else if (key === 'content') {
        if (levels > 1) readBlocks(c, kinds, facts, levels - 1)
      } else if (key === 'source') coded += isCoded(c, kinds, facts, levels) ? c.at - start : 0
      else if (key !== undefined) {
        readSpan(c)
        coded += c.at - start
      }
    })
    if (type === undefined) return
    if (kinds.images.has(type)) facts.images += 1
    if (kinds.thinking.has(type)) facts.thinking = true
    if (levels === BLOCK_LEVELS && kinds.results?.has(type)) facts.endsWithResults = true
    if (kinds.media.has(type)) {
      facts.media += 1
      facts.mediaBytes += coded
      if (type === kinds.document) facts.documentBytes += coded
    }
  })
}

/** Whether a source is a medium in base64: a document may also be text, which its provider counts as such. */
function isCoded<N extends string>(c: Cursor, kinds: BlockKinds<N>, facts: HistoryFacts, levels: number): boolean {
  let types = 0
  let coded = 0
  if (atObject(c))
    eachMember(c, SOURCE, key => {
      if (key === 'content') {
        if (levels > 1) readBlocks(c, kinds, facts, levels - 1)
      } else if (key === 'type') {
        types++
        if (readName(c, CODED) !== undefined) coded++
      }
    })
  return coded > 0 && coded === types
}

/** More of them than any request has; a body that repeats them without end is left as it is. */
export const MOST_SETTINGS = 64

/** Takes down a setting whose value ends at the cursor. */
export function noteSetting(c: Cursor, settings: Setting[], name: string, start: number, value: number): void {
  if (settings.length <= MOST_SETTINGS) settings.push({ name, start, value: { start: value, end: c.at } })
}

/** Turns a syntax error into an answer the caller can give; any other error is ours and goes on. */
export function scanned(read: () => RequestFacts): ScanResult {
  try {
    return { ok: true, facts: read() }
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { ok: false, message: error.message, at: error.at }
    throw error
  }
}

/**
 * The limit of an answer's tokens that holds whichever of several a host reads: the largest, and none where one is zero or below, which means
 * "no limit" to some hosts. Infinity stands for none until the whole request has been read.
 */
export function looserLimit(known: number | undefined, next: number | undefined): number | undefined {
  return next === undefined ? known : Math.max(known ?? 0, next > 0 ? next : Number.POSITIVE_INFINITY)
}

export const limitOf = (loosest: number | undefined): number | undefined =>
  loosest === Number.POSITIVE_INFINITY ? undefined : loosest
