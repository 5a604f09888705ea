import type { z } from 'zod'
import { isObject, same } from './aliases.ts'
import type { Detail } from './issues.ts'

/** What a body may hold of the record that it replaces, beside what it may change. */
export interface ReadOnly {
  /** Members of the record that only the service writes, by name. */
  readonly members: Readonly<Record<string, z.ZodType>>
  /** Those that change by themselves between a read and a write: they are taken as they come. */
  readonly moving: ReadonlySet<string>
}

const known = new WeakMap<z.ZodType, ReadOnly>()
const sent = new WeakMap<object, Record<string, unknown>>()

/** Lets a body hold the whole record that a GET answered: what only the service writes is read, and compared with `differing`. */
export function acceptsRecord<T extends z.ZodType>(
  body: T,
  fields: z.ZodRawShape,
  { shape }: z.ZodObject,
  moving: readonly string[] = [],
): T {
  const members = Object.fromEntries(
    Object.entries(shape as Record<string, z.ZodType>).filter(([name]) => !Object.hasOwn(fields, name)),
  )
  known.set(body, { members, moving: new Set(moving) })
  return body
}

export const readOnlyOf = (body: z.ZodType): ReadOnly | undefined => known.get(body)

/** A body without the members of its record that only the service writes, and those members. */
export function splitReadOnly(
  body: z.ZodType,
  value: unknown,
): { rest: unknown; members: Record<string, unknown> | undefined } {
  const readOnly = known.get(body)
  if (readOnly === undefined || !isObject(value)) return { rest: value, members: undefined }
  const rest: Record<string, unknown> = {}
  const members: Record<string, unknown> = {}
  let some = false
  for (const [name, one] of Object.entries(value)) {
    if (Object.hasOwn(readOnly.members, name)) {
      some = true
      if (!readOnly.moving.has(name)) members[name] = one
    } else rest[name] = one
  }
  return { rest, members: some ? members : undefined }
}

/** Remembers the members that came with a body which was checked. */
export function remember(checked: unknown, members: Record<string, unknown> | undefined): void {
  if (members && isObject(checked)) sent.set(checked, members)
}

/** The members of the record that a body repeats; undefined where it repeats none. */
export const repeated = (checked: object): Readonly<Record<string, unknown>> | undefined => sent.get(checked)

/** Each member that a body repeats otherwise than the record has it. */
export function differing(members: Readonly<Record<string, unknown>>, record: object): Detail[] {
  const has: Readonly<Record<string, unknown>> = { ...record }
  return Object.entries(members)
    .filter(([name, value]) => !same(value, has[name]))
    .map(([path]) => ({
      path,
      message:
        has[path] === undefined
          ? 'there is no record that has one yet; leave it out'
          : `the record says ${brief(has[path])}; leave it out or send that`,
    }))
}

function brief(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > 100 ? 'something else' : text
}
