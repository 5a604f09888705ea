import type { Candidate, Tokens } from './candidate.ts'
import { utf8Bytes } from './text-pieces.ts'

/** Tokens of text without a count: one per four bytes, rounded up. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / 4)
}

/** What an answer that was cut has cost at least: the last usage seen, and no less output than the text that came. */
export function atLeast(seen: Tokens | null, textBytes: number): Tokens {
  const base = seen ?? { cache_read: 0, cache_write_1h: 0, cache_write_5m: 0, output: 0, uncached: 0 }
  return { ...base, output: Math.max(base.output, tokensOfBytes(textBytes)) }
}

/** UTF-8 bytes of everything the model wrote in an answer. */
export function writtenBytes({ dialect, choices }: Candidate): number {
  let bytes = 0
  for (const { text, thinking, refusal, toolCalls } of choices) {
    bytes += utf8Bytes(text) + utf8Bytes(thinking)
    // In the messages dialect a refusal is the text itself.
    if (dialect !== 'messages' && refusal !== null) bytes += utf8Bytes(refusal)
    for (const call of toolCalls) bytes += utf8Bytes(call.name) + utf8Bytes(call.arguments)
  }
  return bytes
}
