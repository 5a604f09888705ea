import type { NanoUsd } from '../money/money.ts'
import { asArray, asObject, type Json, type JsonObject } from './json-value.ts'

export type DialectName = 'messages' | 'chat' | 'responses'

/** Token counts by price class; `output` holds reasoning too. The names are those of the receipt. */
export interface Tokens {
  uncached: number
  cache_write_5m: number
  cache_write_1h: number
  cache_read: number
  output: number
}

export const NO_TOKENS: Tokens = { cache_read: 0, cache_write_1h: 0, cache_write_5m: 0, output: 0, uncached: 0 }

/** What is billed for an answer beside its tokens at list prices. */
export interface Billing {
  /** Words of its provider under which all of its tokens have other prices: `fast`, `priority`, `us`. */
  readonly rates: readonly string[]
  readonly webSearches: number
  /** Fees of its provider that are the same for every model: searches in files, machines for code. */
  readonly fees: NanoUsd
  /** What its provider says that it bills in all; 0 where it says nothing. */
  readonly stated: NanoUsd
  /** Of its tokens, those of sound. */
  readonly audioInput: number
  readonly audioOutput: number
  /** The model that answered, where the provider fell back from the one that was asked. */
  readonly fallback: string | null
  /** What other models used for it: an advisor, a model that declined, a tool that draws. null: a model that is not named. */
  readonly others: readonly { readonly model: string | null; readonly tokens: Tokens }[]
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** The text the model wrote, never re-serialised; it may be invalid JSON when the answer was cut by a token limit. */
  readonly arguments: string
  /** Its tool takes free text (chat and responses). */
  readonly custom?: true
}

export interface CandidateChoice {
  readonly index: number
  /** Text blocks joined without a separator. */
  readonly text: string
  readonly toolCalls: readonly ToolCall[]
  /** null unless the model refused; in the messages dialect the text written before the refusal. */
  readonly refusal: string | null
  readonly thinking: string
  /** The upstream's word, verbatim. */
  readonly finish: string
  /** What the answer holds beyond the fields above; another dialect cannot carry it. */
  readonly extras: readonly string[]
}

/** One complete answer of a model, the same shape for all dialects; gates and translation read this. */
export interface Candidate {
  readonly dialect: DialectName
  readonly id: string | null
  readonly model: string | null
  /** At least one; more only in the chat dialect. */
  readonly choices: readonly CandidateChoice[]
  /** null when the upstream gave no usage. */
  readonly tokens: Tokens | null
  readonly billing: Billing
}

export const BAD_REASONS = {
  not_json: 'a body or frame is not JSON',
  not_utf8: 'the bytes are not UTF-8',
  not_an_answer: 'JSON, but not the shape of an answer',
  empty: 'nothing that could be an answer arrived',
  truncated: 'the answer ended before its end',
  out_of_order: 'frames came in an order that the dialect does not have',
  bad_frame: 'a frame has the wrong shape for its place',
  bad_tool_json: 'the input of a tool call does not parse',
  upstream_error: 'the answer is or holds an error object',
} as const
export type BadReason = keyof typeof BAD_REASONS

/** What an upstream says about its own failure, in either dialect. */
export interface UpstreamError {
  /** The wait that it names. */
  readonly waitMs?: number
  /** What is used up comes back the next day. */
  readonly isOfDay?: boolean
  readonly type: string | null
  readonly message: string
  readonly code: string | null
  readonly param: string | null
}

export interface BadResponse {
  readonly ok: false
  readonly reason: BadReason
  readonly detail: string
  /** Present when `reason` is upstream_error. */
  readonly error?: UpstreamError
}

export interface DecodedAnswer {
  readonly ok: true
  readonly candidate: Candidate
  /** The answer as the dialect's JSON, as if it had not been streamed. */
  readonly body: Uint8Array
  /** The recorded frames may go to a client as they are; false when official clients would stumble over them. */
  readonly replayable: boolean
}

export type Decoded = DecodedAnswer | BadResponse

/** Whether an event of a stream is more than a sign of life: a ping and an empty delta are none. Deltas carry their own kind or role beside what they say, if they say anything. */
export function saysSomething(dialect: DialectName, event: JsonObject): boolean {
  if (dialect === 'messages') {
    return event.type === 'content_block_delta' ? hasContent(event.delta) : event.type !== 'ping'
  }
  if (dialect === 'responses') return event.type !== 'keepalive' && event.delta !== ''
  return asArray(event.choices)
    .map(asObject)
    .some(({ delta, finish_reason: finish }) => hasContent(delta) || (finish !== undefined && finish !== null))
}

function hasContent(delta: Json | undefined): boolean {
  return Object.entries(asObject(delta)).some(([name, value]) => {
    if (name === 'type' || name === 'role' || value === null || value === '') return false
    return !Array.isArray(value) || value.length > 0
  })
}
