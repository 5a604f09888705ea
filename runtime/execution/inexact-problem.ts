import { inexactNumbers, readExactly } from '../../shared/json/exact-numbers.ts'
import type { SchemaCheck } from '../json-schema/schema-check.ts'

const MOST_NAMED = 5
const MOST_DIGITS = 100

/**
 * What is said of a JSON text with inexact numbers, for nothing is passed on or recorded as another number than was written: undefined
 * where there are none. `check` is that of the schema which the value has to fit.
 */
export function inexactProblem(text: string, check?: SchemaCheck): string | undefined {
  const numbers = inexactNumbers(text)
  const [first] = numbers
  if (first === undefined) return undefined
  const named = numbers.slice(0, MOST_NAMED).map(({ at, written }) => `${written.slice(0, MOST_DIGITS)} at ${at}`)
  if (numbers.length > MOST_NAMED) named.push(`${numbers.length - MOST_NAMED} more`)
  const [what, them] = numbers.length === 1 ? ['the number', 'it as a string'] : ['the numbers', 'them as strings']
  const is = numbers.length === 1 ? 'is' : 'are'
  const fault = check?.(readExactly(text, written => written))
  const place = fault && numbers.find(({ at }) => fault.at === `#${at}`)
  const advice = place
    ? `the schema takes no string at ${place.at}, so such a value cannot be given there`
    : `give ${them}, as in "${first.written.slice(0, MOST_DIGITS)}"`
  return `${what} ${named.join(', ')} ${is} beyond 2^53 and would be changed: ${advice}`
}
