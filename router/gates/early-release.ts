import { countChars } from './characters.ts'
import type { GateConfig } from './gate-config.ts'
import { isTooLong } from './length.ts'
import { hasText } from './non-empty.ts'

/** What has come of a choice so far. */
export interface AnswerPrefix {
  readonly text: string
  readonly toolCalls: number
}

type PrefixState =
  /** More of the answer is needed. */
  | 'open'
  /** The window of a regex gate is full: run the gate on this prefix, its verdict is that on the whole answer. */
  | 'ready'
  /** Nothing speaks against it so far; the rest of the answer can still fail. */
  | 'passing'
  | 'passed'
  | 'failed'

export interface EarlyRelease {
  readonly states: ReadonlyMap<string, PrefixState>
  /** Gates to run now; their verdicts come back as `known`. */
  readonly ready: readonly string[]
  /** The first gate that the answer has failed for good. */
  readonly failed: string | null
  /** Every gate has passed or is passing: frames may go to the client. */
  readonly mayFlow: boolean
}

/**
 * docs/spec/router.md §4.1: `non-empty`, `length` with nothing but a maximum, `regex` with nothing but must-not patterns and a window.
 * A fail-closed gate is none: it would have to take back what has gone out.
 */
export function isPrefixDecidable(config: GateConfig): boolean {
  if (config.onAbstain === 'fail-closed') return false
  switch (config.kind) {
    case 'non-empty':
      return true
    case 'length':
      return config.minChars === null && config.minTokens === null
    case 'regex':
      return config.window !== null && config.must.length === 0
    default:
      return false
  }
}

/** Where the gates of a route stand on the beginning of an answer. `known` holds verdicts of gates that were `ready`. */
export function earlyRelease(
  gates: readonly GateConfig[],
  prefix: AnswerPrefix,
  known: ReadonlyMap<string, 'pass' | 'fail' | 'abstain'> = new Map(),
): EarlyRelease {
  const states = new Map(gates.map(gate => [gate.id, stateOf(gate, prefix, known.get(gate.id))]))
  const having = (state: PrefixState) => [...states].filter(([, its]) => its === state).map(([id]) => id)
  return {
    states,
    ready: having('ready'),
    failed: having('failed')[0] ?? null,
    mayFlow: having('passed').length + having('passing').length === states.size,
  }
}

function stateOf(
  gate: GateConfig,
  { text, toolCalls }: AnswerPrefix,
  known: 'pass' | 'fail' | 'abstain' | undefined,
): PrefixState {
  if (!isPrefixDecidable(gate)) return 'open'
  switch (gate.kind) {
    case 'non-empty': {
      if (!hasText(text, gate.minChars) && !(gate.acceptToolCalls && toolCalls > 0)) return 'open'
      // Only the end of the answer says that it is a refusal.
      return gate.refusal === 'pass' ? 'passed' : 'passing'
    }
    case 'length':
      return isTooLong(gate, text) ? 'failed' : 'passing'
    case 'regex':
      // An abstention is ignored: the gate is fail-open.
      if (known !== undefined) return known === 'fail' ? 'failed' : 'passed'
      return isWindowFull(text, gate.window ?? 0) ? 'ready' : 'open'
    default:
      return 'open'
  }
}

/** A text that ends in the first half of a character does not have that character yet. */
function isWindowFull(text: string, window: number): boolean {
  const last = text.charCodeAt(text.length - 1)
  const whole = last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text
  return countChars(whole, window) >= window
}
