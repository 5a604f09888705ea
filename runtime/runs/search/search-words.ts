import { readJson } from '../../../shared/json/read-json.ts'
import { userMessage } from '../../execution/harness/conversation.ts'
import { clearText } from '../../vault/records.ts'
import { idWord } from './match-expression.ts'

/** What the store has of a run, sealed where it is sealed. */
export interface SearchableRun {
  id: string
  agent_name: string
  error_code: string | null
  model: string | null
  labels: string
  finished_ms: number | null
  input: string | null
  error_message: string | null
}

const MOST_MESSAGE = 2000
const MOST_ERROR = 500

/**
 * The words that a run is found by: those that stand in the store in clear. Of what a run was told only once it has ended, since an
 * agent that keeps no prompts lets go of them then.
 */
export function searchWords(run: SearchableRun): string {
  const labels = Object.entries(readJson(run.labels) as Record<string, string>)
  const texts = run.finished_ms === null ? [] : [messageOf(run), clearOf(run.error_message)?.slice(0, MOST_ERROR)]
  return [run.agent_name, run.error_code, run.model, idWord(run.id), ...labels.flat(), ...texts]
    .filter(word => word !== null && word !== undefined && word !== '')
    .join('\n')
    .toWellFormed()
    .replaceAll('\0', ' ')
}

const clearOf = (stored: string | null): string | undefined => (stored === null ? undefined : clearText(stored))

function messageOf({ input }: SearchableRun): string | undefined {
  const text = clearOf(input)
  if (text === undefined || text === '') return undefined
  return userMessage(readJson(text) as Record<string, unknown>).slice(0, MOST_MESSAGE)
}
