import { automata, type State } from './pattern-automaton.ts'
import { isWord, PatternError, type Place, parsePattern } from './pattern-syntax.ts'

/**
 * Patterns of authors, matched in linear time: a backtracking matcher could be made to stand still for hours by a crafted
 * text. A pattern is compiled to an automaton whose states are followed side by side, one pass over the text. Known are literals, `.`,
 * classes, `\d \w \s \b` and their opposites, groups, `|`, `^`, `$`, and `? * + {m,n}`; references and lookarounds have no such automaton.
 */
export interface Pattern {
  /** The parts of a text that some match covers, from start to end, those that overlap as one. */
  covered(text: string): [start: number, end: number][]
}

const MOST_STATES = 500
const DIALECT = { mostRepeats: 200, exact: false }

/** The pattern, or what is wrong with it. */
export function compilePattern(source: string): Pattern | string {
  try {
    const states = automata(parsePattern(source, DIALECT), MOST_STATES).at(-1)!
    if (matchesNothing(states)) return 'it matches the empty text'
    return { covered: text => run(states, text) }
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}

/** The states that are reached without a character, with the earliest start of a match that is in each. */
function follow(
  states: readonly State[],
  into: Map<number, number>,
  from: number,
  start: number,
  holds: (place: Place) => boolean,
): void {
  const open = [from]
  while (open.length > 0) {
    const at = open.pop()!
    const known = into.get(at)
    if (known !== undefined && known <= start) continue
    into.set(at, start)
    const state = states[at]!
    if (state.is === 'split') open.push(state.next, state.other)
    else if (state.is === 'place' && holds(state.place)) open.push(state.next)
  }
}

function matchesNothing(states: readonly State[]): boolean {
  const reached = new Map<number, number>()
  follow(states, reached, states.length - 1, 0, () => true)
  return reached.has(0)
}

function run(states: readonly State[], text: string): [number, number][] {
  const found: [number, number][] = []
  let active = new Map<number, number>()
  let before = ''
  for (let at = 0; at <= text.length; ) {
    const char = at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : ''
    const edge = isWord(before) !== isWord(char)
    const holds = (place: Place): boolean =>
      place === 'start' ? at === 0 : place === 'end' ? char === '' : (place === 'edge') === edge
    const here = new Map<number, number>()
    for (const [state, start] of active) follow(states, here, state, start, holds)
    follow(states, here, states.length - 1, at, holds)
    const start = here.get(0)
    if (start !== undefined && start < at) cover(found, start, at)
    active = new Map()
    for (const [at, start] of here) {
      const state = states[at]!
      if (state.is !== 'char' || char === '' || !state.test(char)) continue
      const known = active.get(state.next)
      if (known === undefined || start < known) active.set(state.next, start)
    }
    before = char
    at += char.length || 1
  }
  return found
}

/** Matches come in the order of their ends. */
function cover(found: [number, number][], start: number, end: number): void {
  let from = start
  while (found.length > 0 && found.at(-1)![1] > from) from = Math.min(from, found.pop()![0])
  found.push([from, end])
}
