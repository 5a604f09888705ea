import { encodePointer } from '@cfworker/json-schema'

/** A schema that is an object. Its keywords have the types that they ought to have: `usable-schema.ts` has looked. */
export interface Schema {
  readonly [keyword: string]: unknown
  readonly __absolute_ref__?: string
  readonly __absolute_recursive_ref__?: string
}
export type AnySchema = Schema | boolean
/** The members or items that some keyword has looked at, for `unevaluated…`. */
export type Seen = Set<string | number>

/** One value under one schema, and where what is wrong with it is said. */
export interface Instance<Value> {
  readonly schema: Schema
  readonly value: Value
  readonly at: Where | undefined
  readonly seen: Seen
  /** The last word stays; that of a part counts before that of the whole. */
  wrong(error: () => string, part?: Fault): void
}

/** What the keywords need of the whole check. */
export interface Evaluation {
  /** `seen` is that of the same value; the parts of a value have their own. */
  check(schema: AnySchema, value: unknown, at: Where | undefined, seen?: Seen): Fault | undefined
  matches(pattern: string, text: string): boolean
  /** The same for equal values only. */
  keyOf(value: unknown): string
  /** Whether a value is in the list of a schema; the list is read once. */
  isIn(list: readonly unknown[], value: unknown, of: object): boolean
  /** Ends the check when too much work was done. */
  spend(steps: number): void
}

export class TooMuchWork extends Error {}

/** A place in a value, from the inside to the outside. */
export interface Where {
  readonly name: string | number
  readonly within: Where | undefined
}

/** What is wrong with a value. The words are made only when they are read: there can be very many faults. */
export interface Fault {
  readonly at: Where | undefined
  readonly error: () => string
  /** Of a schema `false`, which has no reason of its own: its parent gives one. */
  readonly bare?: true
}

export function pointerOf(at: Where | undefined): string {
  const names: string[] = []
  for (let one = at; one; one = one.within) names.push(encodePointer(String(one.name)))
  return ['#', ...names.toReversed()].join('/')
}
