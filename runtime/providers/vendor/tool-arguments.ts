import { isObject, tryParse } from '../../../shared/dialects/json-value.ts'

/**
 * The member that stands for arguments which are no JSON object. No tool has it, so the check against the tool's schema
 * refuses the call and its complaint, with the text itself, goes back to the model.
 */
export const NOT_AN_OBJECT = 'these arguments are not a JSON object'

const SHOWN = 500

/** The arguments of a call from the text that a model wrote; nothing at all means no arguments. */
export function readArguments(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  const value = tryParse(text)
  return isObject(value) ? { ...value } : { [NOT_AN_OBJECT]: text.slice(0, SHOWN).toWellFormed() }
}
