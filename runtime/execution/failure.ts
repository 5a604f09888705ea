import type { RunErrorCode } from '../../shared/wire/runtime/run.ts'

/** With the code `agent_deleted`. */
export const AGENT_DELETED = 'the agent was deleted: publish it again, or another one, and start a new run'

/** Ends the run `failed` with one of the codes of the contract. */
export class RunFailure extends Error {
  override name = 'RunFailure'
  readonly code: RunErrorCode
  readonly stepId: string | undefined
  /** What came of the answer before it ended; `{}` where there is nothing. */
  readonly output: Readonly<Record<string, unknown>>
  constructor(
    code: RunErrorCode,
    message: string,
    { stepId, output = {}, cause }: { stepId?: string; output?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.output = output
    this.code = code
    this.stepId = stepId
  }
}

/**
 * A call that did not work. `transient` says whether the same call may work a little later, `unbilled` that it cost nothing; what to
 * do about it is the engine's decision, so nothing that makes calls retries by itself.
 */
export class StepFailure extends Error {
  override name = 'StepFailure'
  readonly code: string
  readonly transient: boolean
  readonly unbilled: boolean
  readonly retryAfterMs: number | undefined
  constructor(
    code: string,
    message: string,
    {
      transient = false,
      unbilled = false,
      retryAfterMs,
      cause,
    }: { transient?: boolean; unbilled?: boolean; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.code = code
    this.transient = transient
    this.unbilled = unbilled
    this.retryAfterMs = retryAfterMs
  }
}

/** Not a failure: the run lets go of its worker until something outside happens. */
export class Suspended extends Error {
  override name = 'Parked'
  readonly until: SuspendedUntil
  constructor(until: SuspendedUntil) {
    super(`parked: ${until.on}`)
    this.until = until
  }
}

/** Several calls wait at once, each for its own. */
export class AllSuspended extends Error {
  override name = 'AllSuspended'
  readonly all: readonly SuspendedUntil[]
  constructor(all: readonly SuspendedUntil[]) {
    super('parked')
    this.all = all
  }
}

export type SuspendedUntil =
  | { on: 'approval'; id: string; expiresMs: number }
  | { on: 'timer'; atMs: number }
  | { on: 'signal'; name: string; atMs?: number }
  | { on: 'subagent'; children: readonly string[] }
  /** The service is stopping: the run goes on wherever it is claimed next. */
  | { on: 'drain' }
