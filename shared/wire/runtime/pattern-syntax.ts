/** What a pattern is made of. How it is written is JavaScript's, with what has no automaton left out: references and looks behind. */
export type Test = (char: string) => boolean
export type Assertion = 'start' | 'end' | 'edge' | 'inside'
export type Node =
  | { is: 'char'; test: Test }
  | { is: 'assertion'; assertion: Assertion }
  | { is: 'all'; parts: Node[] }
  | { is: 'any'; parts: Node[] }
  | { is: 'repeat'; part: Node; least: number; most: number }
  | { is: 'look'; body: Node; not: boolean }

export interface Dialect {
  readonly mostRepeats: number
  /** Looks ahead, names of groups, and classes and line ends exactly as in JavaScript with the flag `u`. */
  readonly exact: boolean
}

const MOST_DEPTH = 100

export const isWord: Test = char => /^\w$/.test(char)
const CLASSES: Readonly<Record<string, Test>> = {
  d: char => char >= '0' && char <= '9',
  w: isWord,
  s: char => /^\s$/.test(char),
  D: char => char < '0' || char > '9',
  W: char => !isWord(char),
  S: char => !/^\s$/.test(char),
}
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v' }

export class PatternError extends Error {}

/** Where the reader of a pattern is. */
interface Cursor {
  readonly chars: readonly string[]
  at: number
  readonly exact: boolean
  readonly fail: (what: string) => never
}

export function parsePattern(source: string, { mostRepeats, exact }: Dialect): Node {
  const chars = [...source]
  let depth = 0
  const fail = (what: string): never => {
    throw new PatternError(`${what} at character ${cursor.at + 1}`)
  }
  const cursor: Cursor = { chars, at: 0, exact, fail }

  function alternatives(): Node {
    const parts = [sequence()]
    while (chars[cursor.at] === '|') {
      cursor.at++
      parts.push(sequence())
    }
    return parts.length === 1 ? parts[0]! : { is: 'any', parts }
  }

  function sequence(): Node {
    const parts: Node[] = []
    while (cursor.at < chars.length && chars[cursor.at] !== '|' && chars[cursor.at] !== ')')
      parts.push(repeated(atom()))
    return { is: 'all', parts }
  }

  function repeated(part: Node): Node {
    const char = chars[cursor.at]
    if (char !== '?' && char !== '*' && char !== '+' && char !== '{') return part
    cursor.at++
    let [least, most] = char === '?' ? [0, 1] : char === '*' ? [0, Infinity] : [1, Infinity]
    if (char === '{') {
      const end = chars.indexOf('}', cursor.at)
      const found = /^(\d{1,9})(,(\d{1,9})?)?$/.exec(chars.slice(cursor.at, end < 0 ? cursor.at : end).join(''))
      if (!found) return fail('expected {m}, {m,} or {m,n}')
      least = Number(found[1])
      most = found[2] === undefined ? least : found[3] === undefined ? Infinity : Number(found[3])
      if (most < least || least > mostRepeats || (most !== Infinity && most > mostRepeats)) {
        return fail(`expected at most ${mostRepeats} repetitions, the smaller number first`)
      }
      cursor.at = end + 1
    }
    if (chars[cursor.at] === '?') cursor.at++
    if (/^[?*+{]$/.test(chars[cursor.at] ?? '')) fail('a repetition of a repetition needs a group')
    return { is: 'repeat', part, least, most }
  }

  function atom(): Node {
    const char = chars[cursor.at++]!
    if (char === '(') return group()
    if (char === '[') return { is: 'char', test: charClass(cursor) }
    if (char === '.') return { is: 'char', test: one => !(exact ? /^[\n\r\u2028\u2029]$/ : /^[\n\r]$/).test(one) }
    if (char === '^') return { is: 'assertion', assertion: 'start' }
    if (char === '$') return { is: 'assertion', assertion: 'end' }
    if (/^[?*+{]$/.test(char)) return fail('there is nothing to repeat')
    if (char !== '\\') return { is: 'char', test: one => one === char }
    const next = chars[cursor.at]
    if (next === 'b' || next === 'B') {
      cursor.at++
      return { is: 'assertion', assertion: next === 'b' ? 'edge' : 'inside' }
    }
    const one = escaped(cursor)
    return { is: 'char', test: typeof one === 'string' ? char => char === one : one }
  }

  /** After an opening bracket. */
  function group(): Node {
    const [, look, name] = /^\?(?:([=!])|:|<([^=!>]+)>)/.exec(chars.slice(cursor.at, cursor.at + 100).join('')) ?? []
    if (chars[cursor.at] === '?') {
      if (!exact && chars[cursor.at + 1] !== ':') return fail('lookarounds and named groups are not supported')
      if (look === undefined && name === undefined && chars[cursor.at + 1] !== ':')
        return fail('looks behind and flags in a group are not supported')
      cursor.at += name === undefined ? 2 : [...name].length + 3
    }
    if (++depth > MOST_DEPTH) return fail(`groups may be nested ${MOST_DEPTH} deep`)
    const inner = alternatives()
    if (chars[cursor.at] !== ')') return fail('a group is not closed')
    cursor.at++
    depth--
    return look === undefined ? inner : { is: 'look', body: inner, not: look === '!' }
  }

  const whole = alternatives()
  return cursor.at < chars.length ? fail('a bracket closes nothing') : whole
}

/** After a backslash. */
function escaped(cursor: Cursor): string | Test {
  const char = cursor.chars[cursor.at++]
  if (char === undefined) return cursor.fail('a backslash ends the pattern')
  if (Object.hasOwn(CLASSES, char)) return CLASSES[char]!
  if (Object.hasOwn(CONTROLS, char)) return CONTROLS[char]!
  if (cursor.exact && char === '0') return '\0'
  if (cursor.exact && 'cuxpP'.includes(char)) return byNumberOrName(cursor, char)
  if (/^[A-Za-z0-9]$/.test(char)) return cursor.fail(`\\${char} is not supported`)
  return char
}

/** `\cA`, `\x41`, `\u0041`, `\u{41}` and `\p{Lu}`; that they are written well is known. */
function byNumberOrName(cursor: Cursor, char: string): string | Test {
  const rest = cursor.chars.slice(cursor.at, cursor.at + 100).join('')
  const found =
    char === 'c'
      ? /^[A-Za-z]/.exec(rest)
      : char === 'x'
        ? /^[0-9A-Fa-f]{2}/.exec(rest)
        : char === 'u'
          ? /^(?:[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}|[0-9A-Fa-f]{4}|\{[0-9A-Fa-f]+\})/.exec(rest)
          : /^\{[A-Za-z0-9_=]+\}/.exec(rest)
  if (!found) return cursor.fail(`\\${char} is not supported`)
  cursor.at += found[0].length
  if (char === 'c') return String.fromCharCode(found[0].charCodeAt(0) % 32)
  if (char === 'p' || char === 'P') {
    const one = new RegExp(`^\\${char}${found[0]}$`, 'u')
    return char => one.test(char)
  }
  const units = found[0].replace(/[{}]/g, '').split('\\u')
  const codes = units.map(unit => Number.parseInt(unit, 16))
  return codes.length > 1 ? String.fromCharCode(...codes) : String.fromCodePoint(codes[0]!)
}

/** After an opening square bracket. */
function charClass(cursor: Cursor): Test {
  const not = cursor.chars[cursor.at] === '^'
  if (not) cursor.at++
  const tests: Test[] = []
  for (let first = !cursor.exact; cursor.chars[cursor.at] !== ']' || first; first = false) {
    const from = member(cursor)
    if (typeof from !== 'string' || cursor.chars[cursor.at] !== '-' || cursor.chars[cursor.at + 1] === ']') {
      tests.push(typeof from === 'string' ? one => one === from : from)
      continue
    }
    cursor.at++
    const to = member(cursor)
    const [low, high] = [from.codePointAt(0)!, typeof to === 'string' ? to.codePointAt(0)! : -1]
    if (low > high) return cursor.fail('a range of a class runs backwards')
    tests.push(one => one.codePointAt(0)! >= low && one.codePointAt(0)! <= high)
  }
  cursor.at++
  return one => tests.some(test => test(one)) !== not
}

function member(cursor: Cursor): string | Test {
  const char = cursor.chars[cursor.at++]
  if (char === undefined) return cursor.fail('a class is not closed')
  if (char !== '\\') return char
  if (!cursor.exact || cursor.chars[cursor.at] !== 'b') return escaped(cursor)
  cursor.at++
  return '\b'
}
