import { z } from 'zod'
import { type Alias, fromAliases } from '../../shared/wire/aliases.ts'
import { check, type Detail } from '../../shared/wire/issues.ts'
import { ArgumentError } from './argument-error.ts'
import type { Action } from './definition.ts'

const NUMBER = /^-?\d{1,15}(?:\.\d{1,6})?$/

/**
 * Arguments as they are meant: other spellings moved to their names, null taken for absent, and the text of a number for a
 * number and the reverse, since ids come as either (docs/spec/runtime.md §8). What does not fit is left for the check to name.
 */
export function coerceArguments(action: Action, given: Record<string, unknown>): Record<string, unknown> {
  const { value } = readAliases(action, given)
  return Object.fromEntries(
    Object.entries(action.arguments.shape).flatMap(([name, schema]) => {
      const one = value[name]
      return one === undefined || one === null ? [] : [[name, retyped(one, kindOf(schema))]]
    }),
  )
}

/** Checked arguments with their defaults; throws an ArgumentError that names each one that does not fit. */
export function readArguments(action: Action, given: Record<string, unknown>): Record<string, unknown> {
  const { details } = readAliases(action, given)
  const checked = check(action.arguments, coerceArguments(action, given))
  const found = [...details, ...(checked.ok ? [] : checked.details)]
  if (!checked.ok || found.length > 0) throw new ArgumentError(found)
  return checked.value
}

const schemas = new WeakMap<Action, Record<string, unknown>>()

/** JSON Schema of an action's arguments, made once. */
export function schemaOf(action: Action): Record<string, unknown> {
  let schema = schemas.get(action)
  if (!schema) {
    const { $schema: _, ...made } = z.toJSONSchema(action.arguments, { io: 'input' })
    schema = made
    schemas.set(action, schema)
  }
  return schema
}

function readAliases({ aliases }: Action, given: Record<string, unknown>) {
  const all: Alias[] = Object.entries(aliases).map(([from, to]) => ({ from, to }))
  const { value, details } = fromAliases(given, all)
  return { value: value as Record<string, unknown>, details: details satisfies Detail[] }
}

type Kind = 'string' | 'number' | 'boolean' | 'array' | 'other'

function kindOf(schema: unknown): Kind {
  let at = schema
  while (at instanceof z.ZodOptional || at instanceof z.ZodDefault) at = at.unwrap()
  if (at instanceof z.ZodString || at instanceof z.ZodEnum) return 'string'
  if (at instanceof z.ZodNumber) return 'number'
  if (at instanceof z.ZodBoolean) return 'boolean'
  return at instanceof z.ZodArray ? 'array' : 'other'
}

function retyped(value: unknown, kind: Kind): unknown {
  // An integer beyond 2^53 was rounded before it came here: only its text is exact.
  if (kind === 'string' && typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : value
  if (kind === 'string' && typeof value === 'string') return value.toWellFormed()
  if (kind === 'number' && typeof value === 'string' && NUMBER.test(value.trim())) return Number(value)
  if (kind === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  if (kind === 'array' && (typeof value === 'string' || typeof value === 'number')) return [String(value)]
  return value
}
