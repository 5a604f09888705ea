import type { InStatement } from '@libsql/client/web'
import type { EventMeta } from '../../shared/wire/runtime/journal.ts'
import type { StepKind } from '../../shared/wire/runtime/run.ts'
import type { Effect, OnInterrupted } from '../../shared/wire/runtime/tool.ts'
import type { ProposedAction } from './approvals.ts'
import type { Reading } from './call-cost.ts'
import type { Spent, SpentParts } from './journal/commit.ts'
import type { EventDraft } from './journal/event.ts'
import type { StepExtras } from './journal/run-journal.ts'
import type { RateLimitWait } from './models/model.ts'

export interface StepSpec {
  stepId: string
  kind: StepKind
  /** What is called: a model, a tool, an action. */
  name: string
  inputHash?: string
  effect: Effect
  onInterrupted: OnInterrupted
  /** Asks the other side whether an interrupted call went through; only for `verify`. */
  verify?: (call: StepCall) => Promise<{ done: true; output: unknown } | { done: false }>
  /** What a person is shown when it is unknown whether the call happened. */
  action?: ProposedAction
  timeoutMs?: number
  /** Goes into the intent, before anything happens; on a repeat the call gets the recorded one. */
  intent?: EventMeta
  /** Committed with the intent. */
  beside?: Pick<StepExtras, 'blobs' | 'extra'>
  /** Waits until the call may be made, before anything of it is on record. */
  ready?: ((wait: RateLimitWait) => Promise<void>) | undefined
  /** Most attempts; absent: as the manifest says. */
  maxAttempts?: number
}

export interface StepCall {
  /** Sent along as Idempotency-Key; the same after a crash, another after a recorded failure. */
  key: string
  attempt: number
  signal: AbortSignal
  intent: EventMeta
  /** An earlier call under the same key was cut off by a crash, and may have been billed. */
  repeated: boolean
  /** Says how to find out what the call has used so far, for the case that no result comes of it. */
  metered: (reading: Reading) => void
}

export interface StepResult {
  output: unknown
  spent?: Spent
  parts?: Partial<SpentParts>
  meta?: EventMeta
  model?: string
  isolationUsed?: string
  extra?: readonly InStatement[]
  /** Further events that belong to this result and are kept with it or not at all. */
  also?: readonly EventDraft[]
}

/** The recorded output of a step, and what it used; `replayed` when nothing was executed for it now. */
export interface StepOutcome {
  output: unknown
  meta: EventMeta
  replayed: boolean
}

/** The step that is the program itself: open as long as the run, since the program begins again after each wait and each crash. */
export const ENTRYPOINT_STEP = 'entrypoint'
