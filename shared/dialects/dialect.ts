import type { SseFrame } from '../http/sse-read.ts'
import type { RouterErrorCase } from '../wire/router/error-cases.ts'
import type { Accumulator, AccumulatorOptions } from './accumulator.ts'
import type { Billing, Decoded, DialectName, Tokens, UpstreamError } from './candidate.ts'
import type { EmitOptions } from './chat/emit.ts'
import type { ScanResult } from './request-facts.ts'
import type { HttpError } from './router-errors.ts'
import type { FinishKind } from './stop-reasons.ts'
import type { UpstreamFault } from './upstream-fault.ts'

/** What a receipt is made by, of a call that only passes. */
export interface PassingDialect {
  /** Request facts from raw bytes; fails when the body is not one JSON object. */
  scan(body: Uint8Array): ScanResult
  /** A new meter for a passing stream. */
  meter(): Meter
  /** Meters an answer that is not a stream. Throws JsonSyntaxError. */
  readBody(body: Uint8Array): MeterReading
  classifyFault(status: number, body: Uint8Array): UpstreamFault
  classifyStreamError(error: UpstreamError): UpstreamFault & { status: number }
}

/** Everything the router has to know about one wire dialect. */
export interface Dialect extends PassingDialect {
  readonly name: DialectName
  /** The inbound and upstream path. */
  readonly path: string
  /** A new accumulator for a recorded stream. */
  accumulator(options?: AccumulatorOptions): Accumulator
  /** The candidate in an answer that was not streamed. */
  decodeJson(body: Uint8Array): Decoded
  /** The frames of a stream for an answer that was not one. */
  emit(body: Uint8Array, options: EmitOptions): Uint8Array[]
  /** Sent while gates run; clients pass over it. */
  readonly keepAlive: Uint8Array
  /** A frame that carries nothing of the answer (comments, pings) and is left out of a replay. */
  isKeepAlive(frame: SseFrame): boolean
  routerError(kind: RouterErrorCase, message: string, requestId: string): HttpError
  routerErrorEvent(kind: RouterErrorCase, message: string, requestId: string): Uint8Array
  finishKind(finish: string): FinishKind
}

/** What a passing answer says about itself. */
export interface MeterReading {
  readonly id: string | null
  readonly model: string | null
  /** Of the first choice, verbatim. */
  readonly finish: string | null
  /** null when no usage was seen. */
  readonly tokens: Tokens | null
  readonly billing: Billing
  /** UTF-8 bytes of text, reasoning and tool input that passed; the floor of an estimate when the stream is cut. */
  readonly textBytes: number
  /** The stream said that it was over. */
  readonly complete: boolean
  readonly error: UpstreamError | null
}

/** Reads a stream that is passing by; it never fails, what it cannot read it leaves out. */
export interface Meter {
  push(frame: SseFrame): void
  reading(): MeterReading
}
