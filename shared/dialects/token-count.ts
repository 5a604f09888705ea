import type { Json } from './json-value.ts'

/** A token field of a usage object: a count, or undefined for anything that is not one. */
export function tokenCount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
