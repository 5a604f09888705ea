import { automata, type State } from '../../shared/wire/runtime/pattern-automaton.ts'
import { type Assertion, isWord, PatternError, parsePattern } from '../../shared/wire/runtime/pattern-syntax.ts'

export interface Matcher {
  readonly states: number
  /** Whether a text holds a match. `spend` gets the amount of work that is, and may end it by throwing. */
  matches(text: string, spend: (steps: number) => void): boolean
}

const MOST_STATES = 5000
const MOST_CHARACTERS = 10_000
const DIALECT = { mostRepeats: 2000, exact: true }

/**
 * A pattern of a schema, matched as JavaScript does with the flag `u` and without ever going back, or the sentence that says why it
 * cannot be. For each position in the text, from its end to its start, it is known from which states the rest can be matched; so looks ahead
 * are nothing but further automata that are followed beside.
 */
export function patternMatcher(source: string): Matcher | string {
  if (source.length > MOST_CHARACTERS) return `it has more than ${MOST_CHARACTERS} characters`
  try {
    new RegExp(source, 'u')
    const all = automata(parsePattern(source, DIALECT), MOST_STATES)
    const states = all.reduce((sum, { length }) => sum + length, 0)
    const programs = all.map(programOf)
    return { states, matches: (text, spend) => begins(programs, text, spend) }
  } catch (error) {
    if (error instanceof SyntaxError) return 'it is not a regular expression'
    if (error instanceof PatternError) return error.message
    throw error
  }
}

interface Program {
  readonly states: readonly State[]
  /** Those that take a character, and those that take none. */
  readonly chars: readonly number[]
  readonly others: readonly number[]
}

function programOf(states: readonly State[]): Program {
  const numbers = [...states.keys()]
  return {
    states,
    chars: numbers.filter(at => states[at]!.is === 'char'),
    others: numbers.filter(at => states[at]!.is !== 'char'),
  }
}

function begins(all: readonly Program[], text: string, spend: (steps: number) => void): boolean {
  let here = all.map(({ states }) => new Uint8Array(states.length))
  let after = here.map(({ length }) => new Uint8Array(length))
  let next = ''
  for (let at = text.length; at >= 0; ) {
    const before = charBefore(text, at)
    const edge = isWord(before) !== isWord(next)
    const holds = (assertion: Assertion): boolean =>
      assertion === 'start' ? at === 0 : assertion === 'end' ? next === '' : (assertion === 'edge') === edge
    for (const [n, program] of all.entries()) {
      spend(follow(program, here[n]!, after[n]!, next, holds, here))
    }
    if (here.at(-1)!.at(-1) === 1) return true
    if (at === 0) break
    const empty = after
    after = here
    here = empty
    next = before
    at -= before.length
  }
  return false
}

function charBefore(text: string, at: number): string {
  if (at === 0) return ''
  const pair = at > 1 ? text.codePointAt(at - 2)! : 0
  return pair > 0xffff ? String.fromCodePoint(pair) : text[at - 1]!
}

/** Marks in `here` the states from which the rest of the text can be matched, by those of the position after; gives the steps taken. */
function follow(
  { states, chars, others }: Program,
  here: Uint8Array,
  after: Uint8Array,
  next: string,
  holds: (assertion: Assertion) => boolean,
  looks: readonly Uint8Array[],
): number {
  here.fill(0)
  let steps = states.length
  if (next !== '') {
    for (const at of chars) {
      const state = states[at]!
      if (state.is === 'char' && after[state.next] === 1 && state.test(next)) here[at] = 1
    }
  }
  // A repetition stands before what it repeats, so its marks come with a further pass.
  for (let more = true; more; ) {
    more = false
    steps += others.length
    for (const at of others) {
      if (here[at] === 1 || !goesOn(states[at]!, here, holds, looks)) continue
      here[at] = 1
      more = true
    }
  }
  return steps
}

function goesOn(
  state: State,
  here: Uint8Array,
  holds: (assertion: Assertion) => boolean,
  looks: readonly Uint8Array[],
): boolean {
  switch (state.is) {
    case 'end':
      return true
    case 'split':
      return here[state.next] === 1 || here[state.other] === 1
    case 'assertion':
      return here[state.next] === 1 && holds(state.assertion)
    case 'look':
      return here[state.next] === 1 && (looks[state.pattern]!.at(-1) === 1) !== state.not
    default:
      return false
  }
}
