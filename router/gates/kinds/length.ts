import { tokensOfBytes } from '../../../shared/dialects/estimate.ts'
import { utf8Bytes } from '../../../shared/dialects/text-pieces.ts'
import { whole } from '../../config/table-fields.ts'
import { countChars } from '../characters.ts'
import { defineGate, type GateContext } from '../define-gate.ts'
import { fail, PASS } from '../gate.ts'

export interface Bounds {
  readonly minChars: number | null
  readonly maxChars: number | null
  readonly minTokens: number | null
  readonly maxTokens: number | null
}

const bound = whole(0, 100_000_000).optional()
const keys = {
  min_chars: bound,
  max_chars: bound,
  min_tokens: bound,
  max_tokens: bound,
}

/**
 * The visible text is within bounds. Where no count is known, tokens are estimated as everywhere, one per four UTF-8
 * bytes rounded up (docs/spec/router.md §4.1): a provider's count holds reasoning and tool calls too, and differs between rungs.
 */
export const length = defineGate({
  kind: 'length',
  about: 'The text is within bounds. One bound at least is needed; a token is four bytes.',
  keys,
  words: {
    min_chars: { about: 'The fewest characters.', unset: 'no bound' },
    max_chars: { about: 'The most characters.', unset: 'no bound' },
    min_tokens: { about: 'The fewest tokens.', unset: 'no bound' },
    max_tokens: { about: 'The most tokens.', unset: 'no bound' },
  },
  resolve({ min_chars = null, max_chars = null, min_tokens = null, max_tokens = null }, context): Bounds {
    const bounds = { minChars: min_chars, maxChars: max_chars, minTokens: min_tokens, maxTokens: max_tokens }
    checkBounds(bounds, context)
    return bounds
  },
  build: config => ({
    judge({ choice: { text } }) {
      const { minChars, minTokens } = config
      if (isTooLong(config, text)) return fail('too_long')
      if (minChars !== null && countChars(text, minChars) < minChars) return fail('too_short')
      if (minTokens !== null && tokensOf(text) < minTokens) return fail('too_short')
      return PASS
    },
  }),
  onPrefix(config) {
    if (config.minChars !== null || config.minTokens !== null) return undefined
    return { canFailLater: true, stateOf: ({ text }) => (isTooLong(config, text) ? 'failed' : 'passing') }
  },
})

function checkBounds({ minChars, maxChars, minTokens, maxTokens }: Bounds, { bad, report }: GateContext): void {
  const isUnbounded = [minChars, maxChars, minTokens, maxTokens].every(bound => bound === null)
  if (isUnbounded && !Object.keys(keys).some(key => bad.has(key)))
    report(['min_chars'], 'a length gate takes at least one of min_chars, max_chars, min_tokens, max_tokens')
  if (minChars !== null && maxChars !== null && minChars > maxChars)
    report(['max_chars'], `expected at least min_chars, which is ${minChars}`)
  if (minTokens !== null && maxTokens !== null && minTokens > maxTokens)
    report(['max_tokens'], `expected at least min_tokens, which is ${minTokens}`)
}

/** Once true it stays true, whatever is appended. */
function isTooLong({ maxChars, maxTokens }: Bounds, text: string): boolean {
  // A stream asks this at every frame, so what a text can be at most is looked at before it is counted.
  if (maxChars !== null && text.length > maxChars && countChars(text, maxChars + 1) > maxChars) return true
  return maxTokens !== null && tokensOfBytes(text.length * 3) > maxTokens && tokensOf(text) > maxTokens
}

const tokensOf = (text: string): number => tokensOfBytes(utf8Bytes(text))
