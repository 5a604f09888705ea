import { type Billing, type DialectName, NO_TOKENS, type Tokens } from '../../../shared/dialects/candidate.ts'
import { dialects } from '../../../shared/dialects/dialects.ts'
import { atLeast } from '../../../shared/dialects/estimate.ts'
import type { SseFrame } from '../../../shared/http/sse-read.ts'
import { inputTokens } from '../../../shared/prices/price.ts'

/** How far a call came: what was never sent or was refused costs nothing. */
type Stage = 'unsent' | 'sent' | 'refused'

export interface AnswerMeter {
  is(stage: Stage): void
  frame(frame: SseFrame): void
  /** So many bytes of an answer that is not a stream. */
  bytes(count: number): void
  whole(body: Uint8Array): void
  /** The model as it answered, where it said. */
  readonly model: string | undefined
  readonly billing: Billing
  /** What the call has used so far: what the provider counted, and never less than what was sent and what came. */
  tokens(): { tokens: Tokens; estimated: boolean }
}

/** Reads along with an answer, so that a call that is cut off is not taken for free. */
export function answerMeter(dialect: DialectName, sentTokens: () => number): AnswerMeter {
  const meter = dialects[dialect].meter()
  let stage: Stage = 'unsent'
  let plainBytes = 0
  let read: ReturnType<typeof meter.reading> | undefined
  const reading = () => read ?? meter.reading()

  return {
    is: now => {
      stage = now
    },
    frame: frame => meter.push(frame),
    bytes: count => {
      plainBytes += count
    },
    whole(body) {
      try {
        read = dialects[dialect].readBody(body)
        if (read.tokens !== null) plainBytes = 0
      } catch {
        // Not JSON, or not all of it: its bytes are what is known.
      }
    },
    get model() {
      return reading().model ?? undefined
    },
    get billing() {
      return reading().billing
    },
    tokens() {
      if (stage !== 'sent') return { tokens: NO_TOKENS, estimated: false }
      const { tokens: seen, textBytes, complete } = reading()
      const counted = seen !== null && inputTokens(seen) > 0 ? seen : null
      const base = counted ?? { ...NO_TOKENS, uncached: sentTokens(), output: seen?.output ?? 0 }
      return { tokens: atLeast(base, Math.max(textBytes, plainBytes)), estimated: counted === null || !complete }
    },
  }
}
