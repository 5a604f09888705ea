import type { Candidate } from '../../shared/dialects/candidate.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { Model } from '../config/model.ts'

/** A call that a gate made: billed whatever came of it. */
export type ModelCall =
  | { readonly kind: 'answered'; readonly candidate: Candidate; readonly costNano: NanoUsd }
  | {
      readonly kind: 'failed'
      /** A word for the receipt. */
      readonly reason: string
      /** The call was made and did not work; false where it was not made at all: no money, no key. */
      readonly isFault: boolean
      readonly costNano: NanoUsd
    }

/**
 * How a gate calls models: over the transport of the request, with its credentials, budget and breakers (router contract
 * §5.5). Neither rejects.
 */
export interface ModelCalls {
  /** A question of the gate's own. */
  ask(model: Model, question: Question, signal: AbortSignal): Promise<ModelCall>
  /** The client's request once more; null is the model that wrote the candidate. */
  repeat(model: Model | null, signal: AbortSignal): Promise<ModelCall>
}

export interface Question {
  readonly system: string
  readonly user: string
  readonly maxOutputTokens: number
}
