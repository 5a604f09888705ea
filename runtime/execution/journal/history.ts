import type { EventMeta } from '../../../shared/wire/runtime/journal.ts'
import type { Spent } from './commit.ts'
import type { JournalEntry } from './event.ts'

/** What the journal says about one step. `open` has an intent and no result: after a crash its outcome is unknown. */
export type StepState =
  | { is: 'open'; attempt: number; meta: EventMeta; at: string; uncertain: number }
  | { is: 'retrying'; attempt: number; meta: EventMeta; nextAt: string }
  | { is: 'waiting'; attempt: number; meta: EventMeta; approvalId: string }
  | Completed
  | { is: 'failed'; attempt: number; error: string; code: string; transient: boolean; seq: number }

interface Completed {
  is: 'completed'
  attempt: number
  /** As the journal holds it. */
  output: unknown
  /** Where the output stands beside the journal: a run with hundreds of large ones does not hold them all. */
  load?: () => Promise<unknown>
  meta: EventMeta
  seq: number
}

export interface History {
  steps: Map<string, StepState>
  /** Kinds of anomaly already reported: each is reported once. */
  anomalies: Set<string>
  retries: number
  /** By step, the attempts that a provider turned away or that never reached one. */
  unbilled: Map<string, number>
  /** What calls used that came to no result. */
  lost: Spent
  /** How often each step has asked a human. */
  questions: Map<string, number>
  /** What the last model step recorded of its request. */
  request?: NonNullable<EventMeta['request']>
}

/** Code of a `step_retrying` that records an attempt interrupted by a crash; the step stays open under the same key. */
export const UNCERTAIN = 'uncertain'

/** What a step gave, whole. */
export async function outputOf({ output, load }: Completed): Promise<unknown> {
  return load === undefined ? output : load()
}

export function emptyHistory(): History {
  return {
    steps: new Map(),
    anomalies: new Set(),
    retries: 0,
    unbilled: new Map(),
    lost: { tokensIn: 0, tokensOut: 0, costNano: 0 },
    questions: new Map(),
  }
}

export function countUnbilled({ unbilled }: History, stepId: string): void {
  unbilled.set(stepId, (unbilled.get(stepId) ?? 0) + 1)
}

/** Counts what a call used that failed. */
export function countLost({ lost }: History, { tokensIn = 0, tokensOut = 0, costUsd = 0 }: EventMeta): void {
  lost.tokensIn += tokensIn
  lost.tokensOut += tokensOut
  lost.costNano += Math.round(costUsd * 1e9)
}

/** Reads a journal back into the state its loop was in. One pass over the events, made once per claim of a run. */
export function readHistory(events: Iterable<JournalEntry>): History {
  const history = emptyHistory()
  for (const event of events) follow(history, event)
  return history
}

/** Which question of a step is the one at hand: the one it waits for, or a new one. */
export function questionOf({ steps, questions }: History, stepId: string): number {
  const asked = questions.get(stepId) ?? 0
  return steps.get(stepId)?.is === 'waiting' ? asked : asked + 1
}

function follow(history: History, event: JournalEntry): void {
  const { steps, anomalies } = history
  const { kind, stepId, attempt, payload, meta, at, seq } = event
  const before = steps.get(stepId)
  const kept = before !== undefined && 'meta' in before ? before.meta : {}
  switch (kind) {
    case 'step_started':
      steps.set(stepId, { is: 'open', attempt, meta, at, uncertain: 0 })
      if (meta.request) history.request = meta.request
      return
    case 'step_completed':
      steps.set(stepId, { is: 'completed', attempt, output: payload.output, meta, seq })
      return
    case 'step_failed':
      countLost(history, meta)
      steps.set(stepId, {
        is: 'failed',
        attempt,
        error: String(payload.error),
        code: String(payload.code),
        transient: payload.transient === true,
        seq,
      })
      return
    case 'step_retrying':
      history.retries++
      countLost(history, meta)
      if (payload.unbilled === true) countUnbilled(history, stepId)
      if (payload.code === UNCERTAIN) {
        const uncertain = before?.is === 'open' ? before.uncertain + 1 : 1
        steps.set(stepId, { is: 'open', attempt, meta: kept, at, uncertain })
      } else steps.set(stepId, { is: 'retrying', attempt, meta: kept, nextAt: String(payload.nextAt) })
      return
    case 'step_waiting':
      history.questions.set(stepId, (history.questions.get(stepId) ?? 0) + 1)
      steps.set(stepId, { is: 'waiting', attempt, meta: kept, approvalId: String(payload.approvalId) })
      return
    case 'anomaly_detected':
      anomalies.add(String(payload.kind))
      return
    case 'confidence_evaluated':
      return
  }
}

/** A call that was cut off has an answer as well, as far as it went. */
const SAY_WHO_ANSWERED = new Set(['step_completed', 'step_failed', 'step_retrying'])

/** The calls of a journal that no price was known for; of a fork those of its source are paid there. */
export const unpricedOf = (entries: readonly Pick<JournalEntry, 'kind' | 'meta'>[]): number =>
  entries.filter(({ kind, meta }) => SAY_WHO_ANSWERED.has(kind) && meta.unpriced && meta.copiedFrom === undefined)
    .length

/** The models whose answers a journal holds, in the order of their names. */
export function modelsOf(
  entries: readonly Pick<JournalEntry, 'kind' | 'meta'>[],
  more: Iterable<string> = [],
): string[] {
  const models = new Set(more)
  for (const { kind, meta } of entries) {
    if (SAY_WHO_ANSWERED.has(kind) && typeof meta.model === 'string') models.add(meta.model)
  }
  return [...models].sort()
}
