import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import type { Said } from './agent-run.ts'

/** Why an answer is none to go on with, in words that say what to do; undefined for a whole one. */
export function cutShort(
  { stop, cappedByBudget }: Pick<Said, 'stop' | 'cappedByBudget'>,
  text: string,
  { limits }: Pick<Manifest, 'limits'>,
): { code: 'output_truncated' | 'model_refused'; message: string } | undefined {
  if (stop === 'length') {
    const why = cappedByBudget
      ? 'what the budget leaves: raise the budget'
      : `its longest length: raise limits.maxOutputTokens (now ${limits.maxOutputTokens}), shorten what the model is sent`
    return { code: 'output_truncated', message: `the answer was cut off at ${why}, or ask for less` }
  }
  if (stop !== 'refusal') return undefined
  const said = text.trim() === '' ? 'without a word' : 'what it said is in output.result'
  return { code: 'model_refused', message: `the model or its provider refused to answer: ${said}` }
}
