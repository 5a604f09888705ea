import { type Assertion, type Node, PatternError, type Test } from './pattern-syntax.ts'

/** The states of one pattern: the first to be built, at 0, is the end; the last is where it begins. */
export type State =
  | { is: 'char'; test: Test; next: number }
  | { is: 'assertion'; assertion: Assertion; next: number }
  | { is: 'split'; next: number; other: number }
  /** Goes on if the pattern of that number does, or does not, begin here. */
  | { is: 'look'; pattern: number; not: boolean; next: number }
  | { is: 'end' }

/** The automata of a pattern: what it looks ahead for stands before it, so that it is the last. */
export function automata(pattern: Node, mostStates: number): State[][] {
  const all: State[][] = []
  // What adds no state takes its time as well: `((){9}){9}` and so on.
  const left = { states: mostStates, steps: 20 * mostStates }
  build(pattern, all, left)
  return all
}

function build(pattern: Node, all: State[][], left: { states: number; steps: number }): number {
  const states: State[] = [{ is: 'end' }]
  const add = (state: State): number => {
    if (--left.states < 0) throw new PatternError('it is too large')
    return states.push(state) - 1
  }
  /** The state in which `node` begins, before `next`. */
  function before(node: Node, next: number): number {
    if (--left.steps < 0) throw new PatternError('it is too large')
    switch (node.is) {
      case 'all':
        return node.parts.reduceRight((after, part) => before(part, after), next)
      case 'any':
        return node.parts
          .map(part => before(part, next))
          .reduceRight((other, one) => add({ is: 'split', next: one, other }))
      case 'repeat': {
        let after = next
        if (node.most === Infinity) {
          const loop: State = { is: 'split', next: 0, other: next }
          after = add(loop)
          loop.next = before(node.part, after)
        } else {
          for (let more = node.least; more < node.most; more++) {
            after = add({ is: 'split', next: before(node.part, after), other: next })
          }
        }
        for (let once = 0; once < node.least; once++) after = before(node.part, after)
        return after
      }
      case 'look':
        return add({ is: 'look', pattern: build(node.body, all, left), not: node.not, next })
      default:
        return add({ ...node, next })
    }
  }
  const first = before(pattern, 0)
  // The first state stands last.
  if (first !== states.length - 1) add({ is: 'split', next: first, other: first })
  return all.push(states) - 1
}
