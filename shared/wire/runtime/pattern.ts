import { automata, type State } from './pattern-automaton.ts'
import { type Assertion, isWord, PatternError, parsePattern, type Test } from './pattern-syntax.ts'

/**
 * Patterns of authors, matched in linear time: a backtracking matcher could be made to stand still for hours by a crafted
 * text. A pattern is compiled to an automaton whose states are followed side by side, one pass over the text. Known are literals, `.`,
 * classes, `\d \w \s \b` and their opposites, groups, `|`, `^`, `$`, and `? * + {m,n}`; references and lookarounds have no such automaton.
 */
export interface Pattern {
  /** The parts of a text that some match covers, from start to end, those that overlap as one; undefined: it would take more than is left. */
  covered(text: string, work?: Work): [start: number, end: number][] | undefined
}

/** Steps from state to state that may still be taken; some hundred million are a second. */
export interface Work {
  left: number
}

const MOST_STATES = 500
const DIALECT = { mostRepeats: 200, exact: false }

/** The pattern, or what is wrong with it. */
export function compilePattern(source: string): Pattern | string {
  try {
    const states = automata(parsePattern(source, DIALECT), MOST_STATES).at(-1)!
    if (matchesNothing(states)) return 'it matches the empty text'
    return { covered: finder(states) }
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}

/** States that were reached, in their order, each with the earliest start of a match that is in it; -1: not reached. */
interface Reached {
  states: Int32Array
  count: number
  starts: Int32Array
}

const nowhere = ({ length }: readonly State[]): Reached => ({
  states: new Int32Array(length),
  count: 0,
  starts: new Int32Array(length).fill(-1),
})

function enter(reached: Reached, state: number, start: number): boolean {
  const known = reached.starts[state]!
  if (known !== -1 && known <= start) return false
  if (known === -1) reached.states[reached.count++] = state
  reached.starts[state] = start
  return true
}

function clear(reached: Reached): void {
  for (let n = 0; n < reached.count; n++) reached.starts[reached.states[n]!] = -1
  reached.count = 0
}

/** Where the states at one position in a text are looked at. */
interface Here {
  states: readonly State[]
  reached: Reached
  holds: (assertion: Assertion) => boolean
  open: number[]
}

/** The states that are reached from one without a character; how many steps that was. */
function follow({ states, reached, holds, open }: Here, from: number, start: number): number {
  let steps = 0
  open.push(from)
  while (open.length > 0) {
    const at = open.pop()!
    steps++
    if (!enter(reached, at, start)) continue
    const state = states[at]!
    if (state.is === 'split') open.push(state.next, state.other)
    else if (state.is === 'assertion' && holds(state.assertion)) open.push(state.next)
  }
  return steps
}

/** The states before the first character, wherever it stands. */
function atFirst(states: readonly State[]): number[] {
  const reached = nowhere(states)
  follow({ states, reached, holds: () => true, open: [] }, states.length - 1, 0)
  return [...reached.states.subarray(0, reached.count)]
}

const matchesNothing = (states: readonly State[]): boolean => atFirst(states).includes(0)

const ASCII = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))

/** Of each character of ASCII, which states take it. */
function tablesOf(states: readonly State[]): (Uint8Array | undefined)[] {
  const known = new Map<Test, Uint8Array>()
  return states.map(state => {
    if (state.is !== 'char') return undefined
    const table = known.get(state.test) ?? Uint8Array.from(ASCII, char => (state.test(char) ? 1 : 0))
    known.set(state.test, table)
    return table
  })
}

function finder(states: readonly State[]): Pattern['covered'] {
  const tables = tablesOf(states)
  const first = atFirst(states)
  /** Of each character of ASCII, whether a match may begin with it. */
  const begins = Uint8Array.from(ASCII, (_, code) => (first.some(at => tables[at]?.[code] === 1) ? 1 : 0))
  const last = states.length - 1

  return (text, work = { left: Number.POSITIVE_INFINITY }) => {
    const found: [number, number][] = []
    let active = nowhere(states)
    let next = nowhere(states)
    const reached = nowhere(states)
    let at = 0
    const holds = (assertion: Assertion): boolean => {
      if (assertion === 'start') return at === 0
      if (assertion === 'end') return at === text.length
      return (assertion === 'edge') === (isWord(charBefore(text, at)) !== isWord(charAt(text, at)))
    }
    const here: Here = { states, reached, holds, open: [] }
    while (at <= text.length) {
      // Most of a text is in no match.
      while (active.count === 0 && begins[text.charCodeAt(at)] === 0) at++
      for (let n = 0; n < active.count; n++) {
        const state = active.states[n]!
        work.left -= follow(here, state, active.starts[state]!)
      }
      work.left -= follow(here, last, at)
      if (work.left < 0) return undefined
      const start = reached.starts[0]!
      if (start !== -1 && start < at) cover(found, start, at)
      const code = text.charCodeAt(at)
      const char = code < 128 ? '' : charAt(text, at)
      for (let n = 0; n < reached.count; n++) {
        const one = reached.states[n]!
        const state = states[one]!
        if (state.is !== 'char') continue
        const takes = code < 128 ? tables[one]![code] === 1 : char !== '' && state.test(char)
        if (takes) enter(next, state.next, reached.starts[one]!)
      }
      clear(reached)
      clear(active)
      const former = active
      active = next
      next = former
      at += char.length || 1
    }
    return found
  }
}

/** The character that begins there; '' at the end. */
const charAt = (text: string, at: number): string =>
  at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : ''

/** The character that ends there; '' at the beginning. */
function charBefore(text: string, at: number): string {
  if (at === 0) return ''
  const isPair = at > 1 && text.codePointAt(at - 2)! > 0xffff
  return text.slice(at - (isPair ? 2 : 1), at)
}

/** Matches come in the order of their ends. */
function cover(found: [number, number][], start: number, end: number): void {
  let from = start
  while (found.length > 0 && found.at(-1)![1] > from) from = Math.min(from, found.pop()![0])
  found.push([from, end])
}
