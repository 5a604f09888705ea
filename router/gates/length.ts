import { tokensOfBytes } from '../../shared/dialects/estimate.ts'
import { utf8Bytes } from '../../shared/dialects/text-pieces.ts'
import { countChars } from './characters.ts'
import { fail, type GateInput, type GateVerdict, PASS } from './gate.ts'
import type { LengthConfig } from './gate-config.ts'

/**
 * The visible text is within bounds. Where no count is known, tokens are estimated as everywhere, one per four UTF-8
 * bytes rounded up (docs/spec/router.md §4.1): a provider's count holds reasoning and tool calls too, and differs between rungs.
 */
export function length(config: LengthConfig, { choice: { text } }: GateInput): GateVerdict {
  if (isTooLong(config, text)) return fail('too_long')
  if (config.minChars !== null && countChars(text, config.minChars) < config.minChars) return fail('too_short')
  if (config.minTokens !== null && tokensOf(text) < config.minTokens) return fail('too_short')
  return PASS
}

/** Once true it stays true, whatever is appended. */
export function isTooLong({ maxChars, maxTokens }: LengthConfig, text: string): boolean {
  // A stream asks this at every frame, so what a text can be at most is looked at before it is counted.
  if (maxChars !== null && text.length > maxChars && countChars(text, maxChars + 1) > maxChars) return true
  return maxTokens !== null && tokensOfBytes(text.length * 3) > maxTokens && tokensOf(text) > maxTokens
}

const tokensOf = (text: string): number => tokensOfBytes(utf8Bytes(text))
