import type { Change } from '../adapt/draft.ts'
import type { JsonObject } from '../json-value.ts'

/** A translated body and what was left out of it or put otherwise, or everything that stands in the way. */
export type Translation =
  | {
      readonly ok: true
      readonly body: Uint8Array
      /** Left out without an effect on the answer. */
      readonly dropped: readonly string[]
      readonly notes: readonly Change[]
    }
  | { readonly ok: false; readonly refused: readonly string[] }

/** How a translation deals with a wish that the other dialect has no word for. */
export interface Leniency {
  /** It is left out with a note; otherwise the request is refused. */
  readonly lenient?: boolean
}

/**
 * Book of what a translation does not carry over. Every field is mapped, dropped, noted or refused: a translator names the fields it
 * handles, and any other that has a value is noted or refused here.
 */
export interface Ledger {
  /** A wish without a counterpart is left out with a note. */
  readonly lenient: boolean
  /** It has no effect on the answer, so it is left out. */
  drop(path: string): void
  /** It is a wish or a place that the other dialect does not have: noted, with what became of it, or refused where all has to be said. */
  advise(path: string, why: string, became?: string): void
  /** It has an effect that the other dialect cannot express. */
  refuse(path: string, why: string): void
  /** Deals with every member of the object that is not handled; one that is null says nothing and is dropped. */
  only(object: JsonObject, path: string, handled: readonly string[]): void
  readonly dropped: readonly string[]
  readonly notes: readonly Change[]
  readonly refused: readonly string[]
}

/** Members that say what a request is about or where it may be answered, in any dialect: without a counterpart they are always refused. */
const ESSENTIAL: ReadonlySet<string> = new Set([
  'audio',
  'function_call',
  'functions',
  'inference_geo',
  'billing_policy',
  'compaction',
  'thread',
  'container',
  'mcp_servers',
  'n',
  'logprobs',
  'top_logprobs',
])

export function ledger({ lenient = false }: Leniency = {}): Ledger {
  const dropped: string[] = []
  const refused: string[] = []
  const notes: Change[] = []
  const refuse = (path: string, why: string) => void refused.push(`${path}: ${why}`)
  const advise = (path: string, why: string, became?: string) => {
    if (lenient) notes.push({ path, to: became ?? null, why: 'no_counterpart' })
    else refuse(path, why)
  }
  return {
    lenient,
    drop: path => void dropped.push(path),
    advise,
    refuse,
    only(object, path, handled) {
      for (const [name, value] of Object.entries(object)) {
        if (handled.includes(name) || value === undefined) continue
        const at = path === '' ? name : `${path}.${name}`
        const why = 'the other dialect has no such field'
        if (value === null) dropped.push(at)
        else if (ESSENTIAL.has(name)) refuse(at, why)
        else advise(at, why)
      }
    },
    dropped,
    notes,
    refused,
  }
}

/** The end of a translation: its body, or what stands in the way. */
export function closedBook({ refused, dropped, notes }: Ledger, body: () => Uint8Array): Translation {
  return refused.length > 0 ? { ok: false, refused } : { ok: true, body: body(), dropped, notes }
}
