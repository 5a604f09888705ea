import { encodePointer } from '@cfworker/json-schema'

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
