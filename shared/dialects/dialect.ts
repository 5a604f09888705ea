import type { SseFrame } from '../http/sse-read.ts'
import type { RouterErrorCase } from '../wire/router/error-cases.ts'
import type { Accumulator, AccumulatorOptions } from './accumulator.ts'
import type { Decoded, DialectName, UpstreamError } from './candidate.ts'
import type { EmitOptions } from './chat/emit.ts'
import type { Meter, MeterReading } from './meter.ts'
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
  classifyStreamError(error: UpstreamError): UpstreamFault
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
