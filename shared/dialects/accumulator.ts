import type { SseFrame } from '../http/sse-read.ts'
import type { BadReason, BadResponse, Candidate, Decoded, DecodedAnswer, UpstreamError } from './candidate.ts'
import { jsonBytes } from './json-text.ts'
import type { JsonObject } from './json-value.ts'

export const UNNAMED_ERROR: UpstreamError = {
  type: null,
  message: 'The stream reports an error.',
  code: null,
  param: null,
}

export interface AccumulatorOptions {
  /** The `n` of the request: without an end mark, fewer finished choices than this are a cut answer. */
  readonly expectedChoices?: number
}

/** What has come of an answer so far: its only choice, or the first of several. */
export interface AnswerProgress {
  /** Visible text, as the candidate will hold it. */
  readonly text: string
  readonly toolCalls: number
  /** How many choices have something in them. */
  readonly choices: number
  /** The upstream has started to say how the answer ends. */
  readonly ending: boolean
  /** The frames so far may go to a client as they are. */
  readonly replayable: boolean
}

/** Puts the frames of one stream together into one answer. */
export interface Accumulator {
  push(frame: SseFrame): void
  /** Set as soon as nothing that still comes could make the stream an answer. */
  readonly failure: BadResponse | undefined
  readonly progress: AnswerProgress
  /** To be called when the stream has ended; `incomplete` as the frame reader reports it. */
  finish(end: { readonly incomplete: boolean }): Decoded
}

export function bad(reason: BadReason, detail: string): BadResponse {
  return { ok: false, reason, detail }
}

export function upstreamFailed(error: UpstreamError): BadResponse {
  return { ok: false, reason: 'upstream_error', detail: error.message, error }
}

/** Thrown inside a decoder to leave it at the first thing that is wrong; never leaves this folder. */
export class Undecodable extends Error {
  readonly response: BadResponse
  constructor(response: BadResponse) {
    super(response.detail)
    this.name = 'Undecodable'
    this.response = response
  }
}

export function fail(reason: BadReason, detail: string): never {
  throw new Undecodable(bad(reason, detail))
}

/** More names than an object of an answer has. */
const MOST_MEMBERS = 200

/** An object with what a further piece says of it. Each piece costs what is there already: one that always has new names would hold its reader for ever. */
export function merged(before: JsonObject, more: JsonObject): JsonObject {
  const made = { ...before, ...more }
  if (Object.keys(made).length > MOST_MEMBERS) fail('bad_frame', `an object has more than ${MOST_MEMBERS} members`)
  return made
}

/** Its body is made where it is read: a runtime takes the candidate alone, and a long answer is held several times while it is written. */
export function decodedAnswer(candidate: Candidate, body: JsonObject, replayable: boolean): DecodedAnswer {
  return {
    ok: true,
    candidate,
    get body() {
      return jsonBytes(body)
    },
    replayable,
  }
}

/** Runs a decoder and gives what stopped it as a value. */
export function decoding<T>(decode: () => T): T | BadResponse {
  try {
    return decode()
  } catch (error) {
    if (error instanceof Undecodable) return error.response
    throw error
  }
}
