import { z } from 'zod'
import { wireMessage } from '../../shared/wire/issues.ts'
import type { Path } from './locate.ts'
import { inTable, type Problems } from './problem.ts'
import { suggestion } from './suggestion.ts'

export interface Read<T> {
  value: T
  /** Keys that were wrong and left out of the value, so that no problem is reported twice. */
  bad: ReadonlySet<string>
}

/**
 * Checks one table and reports everything wrong with it. What remains without the wrong keys is still given back when
 * it holds together: the checks across tables then find their problems in the same run.
 */
export function readTable<S extends z.ZodObject>(
  problems: Problems,
  path: Path,
  schema: S,
  given: unknown,
): Read<z.output<S>> | undefined {
  if (!isTable(given)) {
    problems.atValue(path, `${nameOf(path)}: expected a table`)
    return undefined
  }
  const first = schema.safeParse(given, { error: wireMessage })
  if (first.success) return { value: first.data, bad: new Set() }
  const bad = new Set<string>()
  let rest: unknown = given
  for (const issue of first.error.issues) {
    for (const wrong of report(problems, path, schema, issue)) {
      bad.add(String(wrong[0]))
      rest = without(rest, wrong)
    }
  }
  const second = schema.safeParse(rest, { error: wireMessage })
  return second.success ? { value: second.data, bad } : undefined
}

/** A copy without what the path leads to; a list is left out whole, so that its items keep their places. */
function without(value: unknown, [step, ...rest]: Path): unknown {
  if (!isTable(value) || step === undefined) return value
  const member = value[step]
  const deeper = rest.length > 0 && isTable(member)
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      if (key !== String(step)) return [[key, item]]
      return deeper ? [[key, without(item, rest)]] : []
    }),
  )
}

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** Reports an issue and answers where in the table it is, once for each thing that is wrong. */
function report(problems: Problems, path: Path, schema: z.ZodType, issue: z.core.$ZodIssue): Path[] {
  const inner = issue.path as Path
  const at = [...path, ...inner]
  if (issue.code === 'unrecognized_keys') {
    for (const key of issue.keys) unknownKey(problems, [...at, key], keysAt(schema, inner))
    return issue.keys.map(key => [...inner, key])
  }
  problems.atValue(at, issue.message === 'Required' ? missing(at) : `${nameOf(at)}: ${issue.message}`)
  return inner.length === 0 ? [] : [inner]
}

export function unknownKey(problems: Problems, path: Path, known: readonly string[]): void {
  const key = String(path.at(-1))
  problems.atKey(path, `unknown key "${key}" ${inTable(path.slice(0, -1))}${suggestion(key, known)}`)
}

export function missing(path: Path): string {
  return `"${String(path.at(-1))}" is missing ${inTable(path.slice(0, -1))}`
}

/** `"ladder" #3 in [[route]] #1`: a key or an item of a list, with the table it stands in. */
export function nameOf(path: Path): string {
  let end = path.length - 1
  let items = ''
  while (end > 1 && typeof path[end] === 'number') items = ` #${Number(path[end--]) + 1}${items}`
  if (typeof path[end] === 'number') return `[[${path[0]}]] #${Number(path[end]) + 1}`
  return `"${String(path[end])}"${items} ${inTable(path.slice(0, end))}`
}

/** The keys that a table inside a schema takes. */
function keysAt(schema: z.ZodType, path: Path): string[] {
  const [step, ...rest] = path
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable)
    return keysAt(schema.unwrap() as z.ZodType, path)
  if (schema instanceof z.ZodObject) {
    if (step === undefined) return Object.keys(schema.shape)
    const member = schema.shape[String(step)] as z.ZodType | undefined
    return member === undefined ? [] : keysAt(member, rest)
  }
  if (schema instanceof z.ZodArray) return keysAt(schema.element as z.ZodType, rest)
  if (schema instanceof z.ZodRecord) return keysAt(schema.valueType as z.ZodType, rest)
  return []
}
