import fc from 'fast-check'
import { parse } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { type Path, type Position, tomlLocator } from './locate.ts'

/** A document as it will be written: each style of TOML has its own form, so that every form is generated. */
type Value =
  | { as: 'scalar'; text: string }
  | { as: 'list'; items: Value[]; spread: boolean }
  | { as: 'inline'; pairs: Pair[]; spread: boolean }
interface Pair {
  key: Key[]
  value: Value
  gap: string
}
interface Key {
  name: string
  written: string
}
interface Section {
  kind: 'table' | 'item'
  key: Key[]
  pairs: Pair[]
  comment: string
  indent: string
}

const SCALARS = [
  '1',
  '-0.5e3',
  'true',
  '0xff',
  '1979-05-27 07:32:00',
  '1979-05-27',
  '"a # b ] } , = \\" \\\\"',
  "'C:\\path # no'",
  '""',
  '"""\nline one\n[[not.a.header]]\nkey = "x" # no\n"""',
  '"""two quotes ""at the end"""""',
  "'''\n'quoted' = { no }\n'''",
  "'''it ends with one''''",
  '"""a \\\n   continued \\""" b"""',
  'inf',
]
const NAMES = ['a', 'b-c', 'D_1', '7', 'long name', 'dot.ted', 'q"uote', 'é\n', '', '#no', '[x]']

const writeKey = (name: string, style: number): string => {
  if (style === 0 && /^[A-Za-z0-9_-]+$/.test(name)) return name
  if (style === 1 && !/['\n]/.test(name)) return `'${name}'`
  return JSON.stringify(name)
}
const key: fc.Arbitrary<Key> = fc
  .tuple(fc.constantFrom(...NAMES), fc.nat(2))
  .map(([name, style]) => ({ name, written: writeKey(name, style) }))
const gap = fc.constantFrom('', ' ', '  ', '\t')

const { value } = fc.letrec<{ value: Value; pair: Pair }>(tie => ({
  pair: fc.record({ key: fc.array(key, { minLength: 1, maxLength: 3 }), value: tie('value'), gap }),
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom(...SCALARS).map((text): Value => ({ as: 'scalar', text })),
    fc.record({
      as: fc.constant('list' as const),
      items: fc.array(tie('value'), { maxLength: 3 }),
      spread: fc.boolean(),
    }),
    fc.record({
      as: fc.constant('inline' as const),
      pairs: fc.array(tie('pair'), { maxLength: 3 }),
      spread: fc.boolean(),
    }),
  ),
}))
const pair: fc.Arbitrary<Pair> = fc.record({ key: fc.array(key, { minLength: 1, maxLength: 3 }), value, gap })
const section: fc.Arbitrary<Section> = fc.record({
  kind: fc.constantFrom('table' as const, 'item' as const),
  key: fc.array(key, { minLength: 1, maxLength: 3 }),
  pairs: fc.array(pair, { maxLength: 4 }),
  comment: fc.constantFrom('', ' # [[no]] a = 1', '# "'),
  indent: fc.constantFrom('', '  '),
})
const document = fc.record({
  top: fc.array(pair, { maxLength: 4 }),
  sections: fc.array(section, { maxLength: 6 }),
  newline: fc.constantFrom('\n', '\r\n'),
})

interface Written {
  text: string
  /** The path of each key and value with the offset at which it was written. */
  marks: { path: Path; key?: number; value: number }[]
}

/**
 * Writes a document and notes where everything went. `taken` holds every path in use: a second use of one is left
 * out, because TOML forbids it (or, for a list of tables, because it is a new item).
 */
function write({ top, sections, newline }: { top: Pair[]; sections: Section[]; newline: string }): Written {
  let text = ''
  const marks: Written['marks'] = []
  const closed = new Set<string>()
  const open = new Set<string>()
  const lists = new Map<string, number>()
  const id = (path: Path) => JSON.stringify(path)

  const writeValue = (value: Value, path: Path, keyAt?: number): void => {
    marks.push({ path, value: text.length, ...(keyAt !== undefined && { key: keyAt }) })
    if (value.as === 'scalar') text += value.text.replaceAll('\n', newline)
    else if (value.as === 'list') {
      text += '['
      value.items.forEach((item, i) => {
        text += value.spread ? newline + '  # ] comment' + newline + '\t' : ' '
        writeValue(item, [...path, i])
        text += ' ,'
      })
      text += ']'
    } else {
      text += '{'
      let first = true
      const used = new Set<string>()
      for (const pair of value.pairs) {
        if (used.has(pair.key[0]!.name)) continue
        used.add(pair.key[0]!.name)
        if (!first) text += ','
        first = false
        if (value.spread) text += ' # } comment' + newline
        writePair(pair, path)
      }
      text += ' }'
    }
  }

  const writePair = ({ key, value, gap }: Pair, base: Path): void => {
    let path = base
    let keyAt = 0
    text += gap
    key.forEach((part, i) => {
      if (i > 0) text += `${gap}.${gap}`
      keyAt = text.length
      text += part.written
      path = [...path, part.name]
      if (i < key.length - 1) marks.push({ path, key: keyAt, value: keyAt })
    })
    text += `${gap}=${gap}`
    writeValue(value, path, keyAt)
  }

  const writePairs = (pairs: Pair[], base: Path, indent: string): void => {
    const used = new Set<string>()
    for (const pair of pairs) {
      const first = [...base, pair.key[0]!.name]
      if (used.has(id(first)) || closed.has(id(first)) || open.has(id(first)) || lists.has(id(first))) continue
      used.add(id(first))
      closed.add(id(first))
      text += indent
      writePair(pair, base)
      text += newline
    }
  }

  writePairs(top, [], '')
  for (const { kind, key, pairs, comment, indent } of sections) {
    let path: Path = []
    const steps: Path[] = []
    for (const part of key.slice(0, -1)) {
      path = [...path, part.name]
      steps.push(path)
      const count = lists.get(id(path))
      if (count !== undefined) path = [...path, count - 1]
    }
    const own: Path = [...path, key.at(-1)!.name]
    if ([...steps, own].some(step => closed.has(id(step)))) continue
    if (kind === 'table' ? open.has(id(own)) || lists.has(id(own)) : open.has(id(own))) continue
    for (const step of steps) if (!lists.has(id(step))) open.add(id(step))

    text += indent
    const bracket = text.length
    text += kind === 'item' ? '[[ ' : '['
    let keyAt = 0
    key.forEach((part, i) => {
      if (i > 0) text += '. '
      keyAt = text.length
      text += part.written
    })
    text += (kind === 'item' ? ']]' : ' ]') + comment + newline
    if (kind === 'item') {
      const count = lists.get(id(own)) ?? 0
      lists.set(id(own), count + 1)
      marks.push({ path: [...own, count], key: keyAt, value: bracket })
      writePairs(pairs, [...own, count], indent)
    } else {
      open.add(id(own))
      marks.push({ path: own, key: keyAt, value: bracket })
      writePairs(pairs, own, indent)
    }
  }
  return { text, marks }
}

const position = (text: string, offset: number): Position => {
  const before = text.slice(0, offset).split('\n')
  return { line: before.length, column: before.at(-1)!.length + 1 }
}

const valueAt = (root: unknown, path: Path): unknown =>
  path.reduce<unknown>((value, step) => (value as Record<string, unknown> | undefined)?.[step], root)

describe('tomlLocator', () => {
  it('finds every key and value of a generated document at the line and column where it was written', () => {
    let compared = 0
    fc.assert(
      fc.property(document, doc => {
        const { text, marks } = write(doc)
        const parsed = parse(text)
        const locate = tomlLocator(text)
        for (const { path, key, value } of marks) {
          compared++
          expect(valueAt(parsed, path), `${path.join('/')} is in the document`).not.toBeUndefined()
          expect(locate.value(path), `value of ${path.join('/')} in\n${text}`).toEqual(position(text, value))
          if (key !== undefined) {
            expect(locate.key(path), `key of ${path.join('/')} in\n${text}`).toEqual(position(text, key))
          }
        }
      }),
      { numRuns: 250 },
    )
    expect(compared).toBeGreaterThan(2000)
  })

  it('points at the table when the thing asked for is not there', () => {
    const locate = tomlLocator('a = 1\n\n  [[route]]\nmatch = { x = 1 }\n[[route]]\n')
    expect(locate.value(['route', 1, 'ladder'])).toEqual({ line: 5, column: 1 })
    expect(locate.value(['route', 0, 'mode'])).toEqual({ line: 3, column: 3 })
    expect(locate.key(['route', 0, 'match', 'agent'])).toEqual({ line: 4, column: 9 })
    expect(locate.value(['nothing'])).toEqual({ line: 1, column: 1 })
  })

  it('keeps to the header of a table that a header below it had already brought into being', () => {
    const locate = tomlLocator('[tenant.acme.budget]\nper_day_usd = 1\n[tenant]\n')
    expect(locate.value(['tenant'])).toEqual({ line: 3, column: 1 })
    expect(locate.key(['tenant', 'acme', 'budget'])).toEqual({ line: 1, column: 14 })
    expect(locate.key(['tenant', 'acme', 'budget', 'per_day_usd'])).toEqual({ line: 2, column: 1 })
  })
})
