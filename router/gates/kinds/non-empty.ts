import { choice, flag, whole } from '../../config/table-fields.ts'
import { countChars } from '../characters.ts'
import { defineGate } from '../define-gate.ts'
import { fail, finishOf, PASS, settled } from '../gate.ts'

/** What an answer holds that is not text and says something all the same, as a chat or a responses host names it. */
const SOUNDS_AND_PICTURES: ReadonlySet<string> = new Set(['audio', 'images', 'image_generation_call'])

/** Something was answered: enough text, a tool call, sound or a picture. */
export const nonEmpty = defineGate({
  kind: 'non-empty',
  about: 'The answer says something.',
  builtIn: true,
  keys: {
    accept_tool_calls: flag.default(true),
    refusal: choice(['fail', 'pass', 'abstain']).default('fail'),
    min_chars: whole(1, 100_000_000).default(1),
  },
  words: {
    accept_tool_calls: 'Whether a tool call is enough.',
    refusal: 'What a refusal of the model counts as.',
    min_chars: 'The fewest characters of text.',
  },
  resolve: ({ accept_tool_calls, refusal, min_chars }) => ({
    acceptToolCalls: accept_tool_calls,
    refusal,
    minChars: min_chars,
  }),
  build: config => ({
    judge(input) {
      const { text, toolCalls, refusal, extras } = input.choice
      if (finishOf(input) === 'refusal' || (refusal ?? '') !== '') return settled(config.refusal, 'refusal')
      if (config.acceptToolCalls && toolCalls.length > 0) return PASS
      if (hasText(text, config.minChars)) return PASS
      if (extras.some(extra => SOUNDS_AND_PICTURES.has(extra))) return PASS
      return fail(text.trim() === '' ? 'empty' : 'too_short')
    },
  }),
  onPrefix: ({ minChars, acceptToolCalls, refusal }) => ({
    stateOf({ text, toolCalls }) {
      if (!hasText(text, minChars) && !(acceptToolCalls && toolCalls > 0)) return 'open'
      // Only the end of the answer says that it is a refusal.
      return refusal === 'pass' ? 'passed' : 'passing'
    },
  }),
})

const hasText = (text: string, minChars: number): boolean => countChars(text.trim(), minChars) >= minChars
