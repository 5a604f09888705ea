import { isObject, tryParse } from '../../../shared/dialects/json-value.ts'
import { inexactNumbers } from '../../../shared/json/exact-numbers.ts'

/**
 * The member that stands for arguments which are no JSON object. No tool has it, so the check against the tool's schema
 * refuses the call and its complaint, with the text itself, goes back to the model.
 */
export const NOT_AN_OBJECT = 'these arguments are not a JSON object'

/** The member that stands for arguments with a number that would become another one: it holds their text as the model wrote it. */
const INEXACT = 'these arguments hold a number beyond 2^53'

const SHOWN = 500

/** The arguments of a call from the text that a model wrote; nothing at all means no arguments. */
export function readArguments(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  const value = tryParse(text)
  if (!isObject(value)) return { [NOT_AN_OBJECT]: text.slice(0, SHOWN).toWellFormed() }
  return inexactNumbers(text).length === 0 ? { ...value } : { [INEXACT]: text.toWellFormed() }
}

/** The text of arguments that were kept as they were written. */
export function writtenArguments(given: Readonly<Record<string, unknown>>): string | undefined {
  const text = given[INEXACT]
  // A model may write the member itself.
  if (typeof text !== 'string' || Object.keys(given).length !== 1 || tryParse(text) === undefined) return undefined
  return inexactNumbers(text).length > 0 ? text : undefined
}
