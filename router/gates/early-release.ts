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

type KnownVerdict = 'pass' | 'fail' | 'abstain'

/** How a gate judges the beginning of an answer (docs/spec/router.md §4.1). */
export interface PrefixRule {
  /** `known` is the verdict of a gate that was `ready`. */
  stateOf(prefix: AnswerPrefix, known: KnownVerdict | undefined): PrefixState
  /** An answer of which frames have gone out can still fail it: an upper bound. */
  readonly canFailLater?: boolean
}

export interface EarlyRelease {
  readonly states: ReadonlyMap<string, PrefixState>
  /** Gates to run now; their verdicts come back as `known`. */
  readonly ready: readonly string[]
  /** The first gate that the answer has failed for good. */
  readonly failed: string | null
  /** Every gate has passed or is passing: frames may go to the client. */
  readonly mayFlow: boolean
}

/** Where the gates of a route stand on the beginning of an answer. `known` holds verdicts of gates that were `ready`. */
export function earlyRelease(
  gates: readonly { readonly id: string; readonly onPrefix: PrefixRule | undefined }[],
  prefix: AnswerPrefix,
  known: ReadonlyMap<string, KnownVerdict> = new Map(),
): EarlyRelease {
  const states = new Map(gates.map(({ id, onPrefix }) => [id, onPrefix?.stateOf(prefix, known.get(id)) ?? 'open']))
  const having = (state: PrefixState) => [...states].filter(([, its]) => its === state).map(([id]) => id)
  return {
    states,
    ready: having('ready'),
    failed: having('failed')[0] ?? null,
    mayFlow: having('passed').length + having('passing').length === states.size,
  }
}
