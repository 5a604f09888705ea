import { countChars } from './characters.ts'
import { fail, finishOf, type GateInput, type GateVerdict, PASS, settled } from './gate.ts'
import type { NonEmptyConfig } from './gate-config.ts'

/** Something was answered: enough text, or a tool call. */
export function nonEmpty(config: NonEmptyConfig, input: GateInput): GateVerdict {
  const { text, toolCalls, refusal } = input.choice
  if (finishOf(input) === 'refusal' || (refusal ?? '') !== '') return settled(config.refusal, 'refusal')
  if (config.acceptToolCalls && toolCalls.length > 0) return PASS
  if (hasText(text, config.minChars)) return PASS
  return fail(text.trim() === '' ? 'empty' : 'too_short')
}

export const hasText = (text: string, minChars: number): boolean => countChars(text.trim(), minChars) >= minChars
