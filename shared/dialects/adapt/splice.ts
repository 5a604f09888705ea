import { type CutItem, cutsOf } from '../json-cut.ts'
import { atArray, atObject, eachItem, eachMember, keyTable, readSpan, wholeObject } from '../json-members.ts'
import { type Cursor, cursor, type Span, spanText } from '../json-scan.ts'

/** Bytes of a body that become another text. */
export interface Edit extends Span {
  readonly text: string
}

const encoder = new TextEncoder()
const COMMA = 0x2c

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The body with some stretches replaced, which do not overlap; every other byte is copied as it is. */
export function withEdits(body: Uint8Array, edits: readonly Edit[]): Uint8Array {
  const sorted = [...edits].sort((a, b) => a.start - b.start)
  const texts = sorted.map(({ text }) => encoder.encode(text))
  const size = sorted.reduce((sum, { start, end }, i) => sum - (end - start) + texts[i]!.length, body.length)
  const out = new Uint8Array(size)
  let from = 0
  let at = 0
  sorted.forEach(({ start, end }, i) => {
    out.set(body.subarray(from, start), at)
    at += start - from
    out.set(texts[i]!, at)
    at += texts[i]!.length
    from = end
  })
  out.set(body.subarray(from), at)
  return out
}

/**
 * Cuts members out of the object that they stand in, each with one comma. Only the bytes around each are looked at, so that a long body
 * is not read again; members that follow each other are cut as one.
 */
export function cutMembers(body: Uint8Array, members: readonly Span[]): Edit[] {
  const runs: { start: number; end: number; isLast: boolean }[] = []
  for (const { start, end } of [...members].sort((a, b) => a.start - b.start)) {
    let after = end
    while (isSpace(body[after])) after += 1
    const isLast = body[after] !== COMMA
    if (!isLast) {
      after += 1
      while (isSpace(body[after])) after += 1
    }
    const run = runs.at(-1)
    const cut = { start, end: isLast ? end : after, isLast }
    if (run?.end === start) Object.assign(run, { end: cut.end, isLast })
    else runs.push(cut)
  }
  return runs.map(({ start, end, isLast }) => ({ start: isLast ? commaBefore(body, start) : start, end, text: '' }))
}

/** Where the comma before a member stands, which goes with the last member of an object. */
function commaBefore(body: Uint8Array, start: number): number {
  let at = start
  while (isSpace(body[at - 1])) at -= 1
  return body[at - 1] === COMMA ? at - 1 : start
}

/** Edits of one object inside a body: members that are left out (`undefined`) or get another text. Undefined where no member is left. */
export function editObject(
  body: Uint8Array,
  { start, end }: Span,
  changes: Readonly<Record<string, string | undefined>>,
): Edit[] | undefined {
  const names = keyTable(Object.keys(changes))
  const members: CutItem[] = []
  const edits: Edit[] = []
  const c = cursor(body.subarray(0, end), start)
  if (!atObject(c)) return []
  eachMember(c, names, (key, from) => {
    const value = readSpan(c)
    const text = key === undefined ? undefined : changes[key]
    if (text !== undefined) edits.push({ ...value, text })
    members.push({ start: from, end: value.end, drop: key !== undefined && text === undefined })
  })
  if (members.every(({ drop }) => drop)) return undefined
  return [...edits, ...cutsOf(members).map(cut => ({ ...cut, text: '' }))]
}

/** Where the value of a member stands; the last of several, as JSON.parse has it. */
export function memberSpan(body: Uint8Array, { start, end }: Span, name: string): Span | undefined {
  let found: Span | undefined
  const c = cursor(body.subarray(0, end), start)
  if (!atObject(c)) return undefined
  eachMember(c, keyTable([name]), key => {
    if (key !== undefined) found = readSpan(c)
  })
  return found
}

/** Cuts items out of an array; undefined where none is left. */
export function cutItems(body: Uint8Array, { start, end }: Span, drops: (text: string) => boolean): Edit[] | undefined {
  const items: CutItem[] = []
  const c = cursor(body.subarray(0, end), start)
  if (!atArray(c)) return []
  eachItem(c, () => {
    const item = readSpan(c)
    items.push({ ...item, drop: drops(spanText(body, item)) })
  })
  if (items.length > 0 && items.every(({ drop }) => drop)) return undefined
  return cutsOf(items).map(cut => ({ ...cut, text: '' }))
}

/** Where `cache_control` may stand. What a tool is called with, and its schema, is the client's own: nothing in there is a setting. */
const WALKED = keyTable(['cache_control', 'content', 'messages', 'system', 'tools'])
const MOST_LEVELS = 8

/** Cuts the `ttl` of every `cache_control`, which leaves the lifetime that every host has. */
export function cutLifetimes(body: Uint8Array): Edit[] {
  const edits: Edit[] = []
  const walk = (c: Cursor, levels: number): void => {
    if (levels === 0) return
    if (atArray(c)) eachItem(c, () => walk(c, levels - 1))
    else if (atObject(c))
      eachMember(c, WALKED, key => {
        if (key === 'cache_control' && atObject(c)) {
          for (const edit of editObject(body, readSpan(c), { ttl: undefined }) ?? []) edits.push(edit)
        } else if (key !== undefined) walk(c, levels - 1)
      })
  }
  wholeObject(body, c => walk(c, MOST_LEVELS))
  return edits
}
