import { isObject, tryParse } from '../../../shared/dialects/json-value.ts'
import { isDeeper } from '../../../shared/http/validate.ts'
import { inexactNumbers } from '../../../shared/json/exact-numbers.ts'

/** The member that stands for arguments which are no JSON object; its value is the beginning of what the model wrote. */
export const NOT_AN_OBJECT = 'these arguments are not a JSON object'

/** The member that stands for arguments with a number that would become another one: it holds their text as the model wrote it. */
const INEXACT = 'these arguments hold a number beyond 2^53'

/** The same for arguments that nothing which reads them, and no reader of the journal, has to follow down. */
const TOO_DEEP = 'these arguments are nested too deep'
const MOST_LEVELS = 400

const SHOWN = 500

/** The arguments of a call from the text that a model wrote; nothing at all means no arguments. */
export function readArguments(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  if (isDeeper(text, MOST_LEVELS)) return { [TOO_DEEP]: text.slice(0, SHOWN).toWellFormed() }
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

/** Why a tool cannot be called with these arguments, where they stand for a text that is none. */
export function unreadable(given: Readonly<Record<string, unknown>>): string | undefined {
  const [name, ...others] = Object.keys(given)
  if (others.length > 0 || (name !== NOT_AN_OBJECT && name !== TOO_DEEP)) return undefined
  return `${name}: ${String(given[name])}`
}
