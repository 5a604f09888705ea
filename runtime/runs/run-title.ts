import type { Run } from '../../shared/wire/runtime/run.ts'
import { userMessage } from '../execution/harness/conversation.ts'

const MOST_CHARS = 120

/** The beginning of what a run was told, on one line; undefined where nothing can be said. */
export function titleOf(input: Run['input']): string | undefined {
  if (input === undefined || Object.keys(input).length === 0) return undefined
  const words = userMessage(input)
    .slice(0, 4 * MOST_CHARS)
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (words === '') return undefined
  return words.length <= MOST_CHARS ? words.toWellFormed() : `${words.slice(0, MOST_CHARS).toWellFormed()}…`
}

/** A run as a list shows it: with a title in the place of what it was given and said. */
export function toTitled({ input, output: _, ...run }: Run): Run {
  const title = titleOf(input)
  return { ...run, ...(title !== undefined && { title }) }
}
