import { ApiError } from '../../shared/http/api-error.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import { type ChainHead, genesis, type JournalEntry, type SealedEvent, sealEvent } from '../execution/journal/event.ts'
import { ENTRYPOINT_STEP } from '../execution/step-spec.ts'
import { isLeftOut, outputAt } from './steps.ts'
import type { RunStore } from './store.ts'

interface CopyOptions {
  at: Date
  sha256: Sha256
  /** False: of another version of the agent, which records anew what tools it offers. */
  keepsTools?: boolean
}

/** Seals entries of a source one after the other as those of a fork: marked as copied, and without their cost, which was paid once. */
function copyOf(runId: string, { at, sha256, keepsTools = true }: CopyOptions) {
  let head: ChainHead = genesis(runId, sha256)
  return ({ kind, stepId, payload, meta: known, seq, runId: sourceId }: JournalEntry): SealedEvent => {
    const { request, ...others } = known
    const meta = keepsTools ? known : others
    const spent = kind === 'step_started' ? {} : { tokensIn: 0, tokensOut: 0, costUsd: 0 }
    const copiedFrom = { runId: sourceId, seq }
    const event = sealEvent(
      head,
      runId,
      { kind, stepId, attempt: 1, payload, meta: { ...meta, ...spent, copiedFrom } },
      at,
      sha256,
    )
    head = { seq: event.entry.seq, hash: event.entry.hash }
    return event
  }
}

export interface ForkCopyDeps {
  runs: Pick<RunStore, 'events'>
  sha256: Sha256
  /** Of all copies together, as they are hashed. Default: no limit. */
  copiedBytesAtMost?: number | undefined
}

/** What a fork begins with, of an outline of its source: a long output is read where it is copied. */
export async function copiedEvents(
  { runs, sha256, copiedBytesAtMost = Number.POSITIVE_INFINITY }: ForkCopyDeps,
  kept: readonly JournalEntry[],
  forkId: string,
  options: Omit<CopyOptions, 'sha256'>,
): Promise<SealedEvent[]> {
  const copy = copyOf(forkId, { ...options, sha256 })
  const events: SealedEvent[] = []
  let bytes = 0
  for (const entry of kept) {
    const { runId, seq, payload } = entry
    const isLong = isLeftOut(payload.output)
    const whole = isLong ? { ...payload, output: await outputAt(runs, runId, seq) } : payload
    const event = copy({ ...entry, payload: whole })
    if (isLong) await pageTurn()
    bytes += event.body.length
    if (bytes > copiedBytesAtMost) {
      const most = Math.floor(copiedBytesAtMost / 1024 ** 2)
      const message = `the steps that this fork of run ${runId} would begin with have more than ${most} MiB, which this service has no memory for: fork at an earlier step`
      throw new ApiError('payload_too_large', message)
    }
    events.push(event)
  }
  return events
}

/**
 * The entries that a fork begins with: of the steps that started before `fromStepId`, or of all of them, as far as they are done. Undefined
 * when there is no such step.
 */
export function stepsToCopy(
  source: readonly JournalEntry[],
  fromStepId: string | undefined,
): JournalEntry[] | undefined {
  // A program's own step ends after all the others, so a fork at it keeps them, and no fork keeps it.
  const isAll = fromStepId === undefined || fromStepId === ENTRYPOINT_STEP
  const from = isAll ? undefined : source.find(({ kind, stepId }) => kind === 'step_started' && stepId === fromStepId)
  if (!isAll && !from) return undefined
  const before = from?.seq ?? Number.POSITIVE_INFINITY
  const started = new Map<string, JournalEntry>()
  const done = doneSteps(source, before)
  for (const event of source) {
    if (event.kind === 'step_started' && event.seq < before && event.stepId !== ENTRYPOINT_STEP) {
      started.set(event.stepId, event)
    }
  }
  const copies: JournalEntry[] = []
  for (const [stepId, start] of started) {
    const end = done.get(stepId)
    if (!end || (allowsCall(start, end) && !isMade(stepId))) continue
    copies.push(start, end)
  }
  return copies

  /** Whether the call that was allowed came to its end in what is copied: `tool-3-1` of `approval-3-1`. */
  function isMade(approval: string): boolean {
    const place = approval.slice('approval'.length)
    return [...started].some(
      ([id, { meta }]) =>
        id.endsWith(place) && meta.stepKind !== 'approval' && meta.stepKind !== 'confidence' && done.has(id),
    )
  }
}

/**
 * The steps that are done, with their ends. So is one whose failure a model was told of: what it then said is about that failure, and what
 * the run did next came of it. What a program made of a failure is not on record.
 */
function doneSteps(source: readonly JournalEntry[], before = Number.POSITIVE_INFINITY): Map<string, JournalEntry> {
  const isProgram = source.some(({ stepId }) => stepId === ENTRYPOINT_STEP)
  const asked = source.findLast(
    ({ kind, meta, seq }) => kind === 'step_started' && meta.stepKind === 'model' && seq <= before,
  )
  const told = isProgram ? 0 : (asked?.seq ?? 0)
  const ends = source.filter(({ kind, seq }) => kind === 'step_completed' || (kind === 'step_failed' && seq < told))
  return new Map(ends.map(end => [end.stepId, end]))
}

/** A human's word is for one call: one that is made again asks again. */
function allowsCall({ stepId, meta }: JournalEntry, { payload }: JournalEntry): boolean {
  const isOfCall = meta.name === 'approval_required' || meta.name === 'low_confidence'
  const { output } = payload as { output?: { approved?: boolean } }
  return meta.stepKind === 'approval' && isOfCall && /^approval-\d+-\d+$/.test(stepId) && output?.approved === true
}

/** The first step before another that is not done, and would be done again by a fork there. */
export function unfinishedBefore(source: readonly JournalEntry[], fromStepId: string): string | undefined {
  const from = source.find(event => event.kind === 'step_started' && event.stepId === fromStepId)?.seq ?? 0
  const done = doneSteps(source, from)
  return source.find(({ kind, seq, stepId }) => kind === 'step_started' && seq < from && !done.has(stepId))?.stepId
}

/**
 * Where a retry begins: the first step that is not done, else the one at which the run failed, such as an answer that did not fit, else
 * behind all of them. Undefined where there is none.
 */
export function retriedStep(source: readonly JournalEntry[], failedAt: string | undefined): string | undefined {
  const done = doneSteps(source)
  const started = source.filter(event => event.kind === 'step_started')
  const open = started.filter(event => !done.has(event.stepId))
  const first = open.find(event => event.stepId !== ENTRYPOINT_STEP) ?? open[0]
  const from = first ?? started.find(event => event.stepId === failedAt)
  return from?.stepId ?? (started.length > 0 ? ENTRYPOINT_STEP : undefined)
}
