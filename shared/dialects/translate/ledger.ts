import type { JsonObject } from '../json-value.ts'

/** A translated body and what was left out of it, or everything that stands in the way. */
export type Translation =
  | { readonly ok: true; readonly body: Uint8Array; readonly dropped: readonly string[] }
  | { readonly ok: false; readonly refused: readonly string[] }

/**
 * Book of what a translation does not carry over. Every field is mapped, dropped or refused: a translator names the fields it
 * handles, and any other that has a value is refused here.
 */
export interface Ledger {
  /** It has no effect on the answer, so it is left out. */
  drop(path: string): void
  /** It has an effect that the other dialect cannot express. */
  refuse(path: string, why: string): void
  /** Refuses every member of the object that is not handled; one that is null says nothing and is dropped. */
  only(object: JsonObject, path: string, handled: readonly string[]): void
  readonly dropped: readonly string[]
  readonly refused: readonly string[]
}

export function ledger(): Ledger {
  const dropped: string[] = []
  const refused: string[] = []
  return {
    drop: path => void dropped.push(path),
    refuse: (path, why) => void refused.push(`${path}: ${why}`),
    only(object, path, handled) {
      for (const [name, value] of Object.entries(object)) {
        if (handled.includes(name) || value === undefined) continue
        const at = path === '' ? name : `${path}.${name}`
        if (value === null) dropped.push(at)
        else refused.push(`${at}: the other dialect has no such field`)
      }
    },
    dropped,
    refused,
  }
}
