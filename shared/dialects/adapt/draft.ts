import { type Effort, efforts } from '../../models/model-table.ts'
import type { AdaptReason } from '../../wire/router/trace.ts'
import { type Span, spanText } from '../json-scan.ts'
import { type Json, tryParse } from '../json-value.ts'
import type { Setting } from '../request-facts.ts'
import { cutMembers, type Edit, editObject } from './splice.ts'

/** One change of a request, in words that hold nothing of what the client wrote beside numbers and the names of settings. */
export interface Change {
  readonly path: string
  readonly from?: string
  /** null where it is left out. */
  readonly to: string | null
  readonly why: AdaptReason
}

/** Changes of the settings of one request, as they are decided. */
export interface Draft {
  /** What the client sent; undefined once it is left out. */
  value(name: string): Json | undefined
  span(name: string): Span | undefined
  remove(name: string, why: AdaptReason, from?: string): void
  /** Puts another JSON text in the place of a value. */
  replace(name: string, text: string, change: Omit<Change, 'path'>): void
  rename(name: string, to: string): void
  /** Leaves out a member inside of a setting, or gives it another text; with its last member a setting goes as a whole. */
  member(name: string, key: string, text: string | undefined, change: Omit<Change, 'path'>): void
  note(change: Change, edits: readonly Edit[]): void
  readonly changes: readonly Change[]
  edits(): Edit[]
}

export function draft(body: Uint8Array, settings: readonly Setting[]): Draft {
  const changes: Change[] = []
  const removed = new Set<string>()
  const replaced = new Map<string, string>()
  const renamed = new Map<string, string>()
  const inner = new Map<string, Record<string, string | undefined>>()
  const others: Edit[] = []
  const last = (name: string) => (removed.has(name) ? undefined : settings.findLast(one => one.name === name))

  /** Undefined where the setting goes as a whole. */
  function editsOf({ name, start, value }: Setting): Edit[] | undefined {
    if (removed.has(name)) return undefined
    const text = replaced.get(name)
    const other = renamed.get(name)
    const members = inner.get(name)
    const edits: Edit[] = []
    if (other !== undefined) edits.push({ start, end: nameEnd(body, start), text: JSON.stringify(other) })
    if (text !== undefined) edits.push({ ...value, text })
    else if (members !== undefined) {
      const made = editObject(body, value, members)
      if (made === undefined) return undefined
      for (const edit of made) edits.push(edit)
    }
    return edits
  }

  return {
    value(name) {
      const found = last(name)
      return found && tryParse(spanText(body, found.value))
    },
    span: name => last(name)?.value,
    remove(name, why, from) {
      if (last(name) === undefined) return
      removed.add(name)
      changes.push({ path: name, ...(from !== undefined && { from }), to: null, why })
    },
    replace(name, text, change) {
      replaced.set(name, text)
      changes.push({ path: name, ...change })
    },
    rename(name, to) {
      renamed.set(name, to)
      changes.push({ path: name, to, why: 'renamed' })
    },
    member(name, key, text, change) {
      inner.set(name, { ...inner.get(name), [key]: text })
      changes.push({ path: `${name}.${key}`, ...change })
    },
    note(change, edits) {
      changes.push(change)
      for (const edit of edits) others.push(edit)
    },
    changes,
    edits() {
      const cut: Setting[] = []
      const edits = settings.flatMap(one => {
        const found = editsOf(one)
        if (found === undefined) cut.push(one)
        return found ?? []
      })
      const spans = cut.map(({ start, value }) => ({ start, end: value.end }))
      return [...edits, ...others, ...cutMembers(body, spans)]
    },
  }
}

/** The end of the literal of a member's name. */
function nameEnd(body: Uint8Array, start: number): number {
  let at = start + 1
  while (body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1
  return at + 1
}
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** A value as a receipt may name it: settings of fixed words and numbers in full, all else by its kind. */
export function described(value: Json | undefined): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return isEffort(value) ? value : 'text'
  return Array.isArray(value) ? 'list' : 'object'
}

/** Between calls of tools a model writes a few words as thinking, and does not think. */
export const isThinkingOff = (type: Json | undefined) => type === 'disabled' || type === 'between_tools'

export const isEffort = (value: Json | undefined): value is Effort => efforts.some(effort => effort === value)

/** The most that a model takes up to an effort, else the least that it takes. */
export function nearestEffort(taken: readonly Effort[], wanted: Effort): Effort | undefined {
  const rank = (effort: Effort) => efforts.indexOf(effort)
  return taken.findLast(effort => rank(effort) <= rank(wanted)) ?? taken[0]
}

/** Brings a limit of the output down to what a model can write; says what it is then. */
export function capLimit(book: Draft, name: string, most: number | undefined): number | undefined {
  const value = book.value(name)
  if (typeof value !== 'number') return undefined
  if (most === undefined || value <= most) return value
  book.replace(name, String(most), { from: described(value), to: String(most), why: 'too_large' })
  return most
}

/** Leaves out what is refused unless it has its default. */
export function dropUnless(book: Draft, name: string, standard: number | undefined): void {
  const value = book.value(name)
  if (typeof value === 'number' && value !== standard) book.remove(name, 'unsupported', described(value))
}

/** Brings an effort to one that the model takes, or leaves it out. */
export function fitEffort(
  value: Json | undefined,
  taken: readonly Effort[] | undefined,
  { set, leaveOut }: { set: (effort: Effort, from: string) => void; leaveOut: (from: string) => void },
): Effort | undefined {
  if (!isEffort(value)) return undefined
  if (taken === undefined || taken.includes(value)) return value
  const nearest = nearestEffort(taken, value)
  if (nearest === undefined) leaveOut(value)
  else set(nearest, value)
  return nearest
}
