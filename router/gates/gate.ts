import type { Candidate, CandidateChoice, DialectName } from '../../shared/dialects/candidate.ts'
import type { RequestFacts } from '../../shared/dialects/request-facts.ts'
import { type FinishKind, finishKind } from '../../shared/dialects/stop-reasons.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { Slots } from '../../shared/time/slots.ts'
import type { Model } from '../config/model.ts'
import type { GateBase } from './common-keys.ts'
import type { PrefixRule } from './early-release.ts'

/** The request an answer belongs to, as the client sent it. */
export interface GateRequest {
  readonly body: Uint8Array
  readonly facts: RequestFacts
  /** The dialect of the body; the answer may have come in the other one. */
  readonly dialect: DialectName
}

/** One answer that is to be judged. */
export interface GateSubject {
  readonly candidate: Candidate
  readonly request: GateRequest
  readonly traceId: string
  readonly tenantId: string
  /** The inbound dialect. */
  readonly api: DialectName
  readonly rung: number
  /** `provider/model` of the rung. */
  readonly model: string
  /** What the rung is called upstream: two names of a config may mean one model. */
  readonly upstreamModel: string
  /** For gates that ask models themselves. */
  readonly models: ModelCalls
}

/** One choice of the answer: a gate sees one at a time. */
export interface GateInput extends GateSubject {
  readonly choice: CandidateChoice
}

export interface GateVerdict {
  readonly verdict: 'pass' | 'fail' | 'abstain'
  /** 0 to 1; without one a pass counts as 1 and a fail as 0. */
  readonly score?: number
  /** At most 200 characters, and never a piece of the answer. */
  readonly reason?: string
  readonly evidenceRef?: string
  /** What the gate says this run cost, beside its flat price. */
  readonly costNano?: NanoUsd
  /** The gate itself did not work: crash, time-out, unreadable verdict. Counts against its error budget. */
  readonly error?: boolean
}

export interface Gate {
  readonly id: string
  readonly kind: string
  readonly onAbstain: GateBase['onAbstain']
  readonly timeoutMs: number
  /** Flat price of each run. */
  readonly costNano: NanoUsd
  /** Where the beginning of an answer can be enough for the verdict (docs/spec/router.md §4.1, early release). */
  readonly onPrefix: PrefixRule | undefined
  /** It leaves the process or runs foreign code. */
  readonly slow: boolean
  /** Its runs are bills of a provider, so an aborted one is given a moment to say what it has cost. */
  readonly callsModels: boolean
  /** Runs of this gate that may go on at once, over all requests. */
  readonly slots: Slots
  /** The verdict at once, where one needs nothing but the answer: it takes no slot, and no time limit could interrupt it. */
  readonly inline: ((input: GateInput) => GateVerdict) | undefined
  /** After an abort it settles as soon as nothing of the run is left behind; its verdict is then not read. */
  run(input: GateInput, signal: AbortSignal): Promise<GateVerdict>
}

/** What the kinds implement; `buildGates` adds the rest of a gate. */
export type GateRun = Gate['run']
export type GateJudge = NonNullable<Gate['inline']>

export const PASS: GateVerdict = { verdict: 'pass' }

export const fail = (reason: string): GateVerdict => ({ verdict: 'fail', reason })

/** An abstention because the gate did not work. */
export const broken = (reason: string): GateVerdict => ({ verdict: 'abstain', reason, error: true })

/** A verdict that is the same for every answer of some sort, as `on_tool_call` and `refusal` say. */
export const settled = (verdict: GateVerdict['verdict'], reason: string): GateVerdict =>
  verdict === 'pass' ? PASS : { verdict, reason }

export const finishOf = ({ candidate, choice }: GateInput): FinishKind => finishKind(candidate.dialect, choice.finish)

/** An answer that hit a token limit: what has a structure cannot be whole (dialects 1.2). */
export const isTruncated = (input: GateInput): boolean => finishOf(input) === 'length'

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
