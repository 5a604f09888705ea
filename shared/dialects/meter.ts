import type { SseFrame } from '../http/sse-read.ts'
import type { Billing, Tokens, UpstreamError } from './candidate.ts'

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
