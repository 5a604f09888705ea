import { parse } from 'smol-toml'

export type Path = readonly (string | number)[]

export interface Position {
  /** Counted from 1. */
  line: number
  /** UTF-16 units, counted from 1. */
  column: number
}

export type Locator = ReturnType<typeof tomlLocator>

/** Finds keys and values of an accepted TOML text by their path in the parsed document. */
export function tomlLocator(text: string) {
  const root = markToml(text)
  const starts = lineStarts(text)
  const find = (path: Path) => nearest(root, path)
  return {
    /** Where the last name of the path is written; for something that is missing, the table it is missing from. */
    key(path: Path): Position {
      const { mark, exact } = find(path)
      return positionAt(starts, exact ? mark.key : mark.value)
    },
    /** Where the value starts; for something that is missing, the table it is missing from. */
    value: (path: Path): Position => positionAt(starts, find(path).mark.value),
  }
}

function nearest(root: Mark, path: Path): { mark: Mark; exact: boolean } {
  let mark = root
  for (const step of path) {
    const next = typeof step === 'number' ? mark.items[step] : mark.members.get(step)
    if (next === undefined) return { mark, exact: false }
    mark = next
  }
  return { mark, exact: true }
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) starts.push(end + 1)
  return starts
}

function positionAt(starts: readonly number[], offset: number): Position {
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (starts[middle]! <= offset) low = middle
    else high = middle - 1
  }
  return { line: low + 1, column: offset - starts[low]! + 1 }
}

/** Where a key and its value start in the text. For a table written as `[header]` the value starts at the bracket. */
interface Mark {
  key: number
  value: number
  readonly members: Map<string, Mark>
  readonly items: Mark[]
}

/**
 * Offsets of every key and value of a TOML text. smol-toml gives positions for syntax only, so this walks the text a
 * second time; it expects what smol-toml has accepted and does not check anything itself.
 */
function markToml(text: string): Mark {
  const scan = scanner(text)
  const root = mark(0, 0)
  let table = root
  scan.skipBlank()
  while (!scan.atEnd()) {
    if (scan.peek() === '[') table = readHeader(scan, root)
    else readPair(scan, table)
    scan.skipBlank()
  }
  return root
}

interface Segment {
  name: string
  at: number
}

type Scanner = ReturnType<typeof scanner>

const mark = (key: number, value: number): Mark => ({ key, value, members: new Map(), items: [] })

function readHeader(scan: Scanner, root: Mark): Mark {
  const bracket = scan.at()
  const isArray = scan.text.startsWith('[[', bracket)
  scan.move(isArray ? 2 : 1)
  const path = scan.readKey(']')
  scan.move(isArray ? 2 : 1)
  const last = path.pop()!
  const parent = descend(root, path, bracket)
  const known = parent.members.get(last.name)
  if (isArray) {
    const list = known ?? mark(last.at, bracket)
    parent.members.set(last.name, list)
    const item = mark(last.at, bracket)
    list.items.push(item)
    return item
  }
  const table = known ?? mark(last.at, bracket)
  // A header below it may have brought the table into being; its own header is where people look for it.
  table.key = last.at
  table.value = bracket
  parent.members.set(last.name, table)
  return table
}

function readPair(scan: Scanner, table: Mark): void {
  const path = scan.readKey('=')
  scan.move(1)
  scan.skipSpace()
  const last = path.pop()!
  const parent = descend(table, path)
  parent.members.set(last.name, readValue(scan, last.at))
}

/** Follows a dotted key, making what is not there; inside a list of tables it is the last one that is meant. */
function descend(from: Mark, path: readonly Segment[], value?: number): Mark {
  let here = from
  for (const { name, at } of path) {
    let next = here.members.get(name)
    if (next === undefined) {
      next = mark(at, value ?? at)
      here.members.set(name, next)
    }
    here = next.items.at(-1) ?? next
  }
  return here
}

function readValue(scan: Scanner, key: number): Mark {
  const start = scan.at()
  const made = mark(key, start)
  const first = scan.peek()
  if (first === '"' || first === "'") scan.skipString()
  else if (first === '[') {
    scan.move(1)
    for (scan.skipBlank(); scan.peek() !== ']'; scan.skipSeparator()) {
      const item = readValue(scan, scan.at())
      made.items.push(item)
    }
    scan.move(1)
  } else if (first === '{') {
    scan.move(1)
    for (scan.skipBlank(); scan.peek() !== '}'; scan.skipSeparator()) readPair(scan, made)
    scan.move(1)
  } else scan.skipScalar()
  return made
}

function scanner(text: string) {
  let at = 0

  const skipWhile = (pattern: RegExp) => {
    pattern.lastIndex = at
    at += pattern.exec(text)?.[0].length ?? 0
  }

  const self = {
    text,
    at: () => at,
    atEnd: () => at >= text.length,
    peek: () => text[at],
    move(by: number) {
      at += by
    },
    skipSpace: () => skipWhile(SPACE),
    /** White space, line ends and comments. */
    skipBlank: () => skipWhile(BLANK),
    skipSeparator() {
      self.skipBlank()
      if (text[at] === ',') at++
      self.skipBlank()
    },
    skipScalar: () => skipWhile(SCALAR),
    skipString: () => skipWhile(STRING),
    /** Reads a dotted key and stops at `end`. */
    readKey(end: string): Segment[] {
      const path: Segment[] = []
      for (;;) {
        self.skipSpace()
        const start = at
        skipWhile(text[at] === '"' || text[at] === "'" ? STRING : BARE)
        path.push({ name: keyName(text.slice(start, at)), at: start })
        self.skipSpace()
        if (text[at] === end || at >= text.length) return path
        at++
      }
    },
  }
  return self
}

const SPACE = /[ \t]*/y
const BLANK = /(?:[ \t\r\n\ufeff]|#[^\n]*)*/y
const BARE = /[A-Za-z0-9_-]+/y
const SCALAR = /[^,\]}#\r\n]*/y
// Multi-line forms first; their end may hold one or two quotes that belong to the text.
const STRING = /"""(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3,5}|'''(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y

function keyName(written: string): string {
  // Escapes in a quoted key mean what the parser says they mean.
  return /^["']/.test(written) ? (parse(`k = ${written}`) as { k: string }).k : written
}
