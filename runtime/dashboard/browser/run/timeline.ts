import type { RunEventData } from '../../../../shared/wire/runtime/journal.ts'
import type { Step } from '../../../../shared/wire/runtime/run.ts'

/** A stretch of a step's time; without an end it goes on. */
export interface Piece {
  kind: 'ran' | 'failed' | 'delay' | 'wait'
  fromMs: number
  toMs?: number
}

export interface TimelineStep {
  stepId: string
  kind: string
  name: string
  status: string
  attempt: number
  pieces: Piece[]
  tokensIn: number
  tokensOut: number
  costUsd: number
  model?: string
  error?: string
  /** Gates of the router that its answer did not pass. */
  gatesFailed?: readonly string[]
  copied: boolean
  replayed: boolean
  inputHash?: string
  output?: unknown
}

export type TimelineEvent = Pick<
  RunEventData,
  'seq' | 'kind' | 'stepId' | 'at' | 'attempt' | 'payload' | 'meta' | 'hash'
>

/** The steps of a run as its events tell them, each with what it did when: attempts, delays before another, waits for people. */
export function timelineOf(events: Iterable<TimelineEvent>, replayed: ReadonlySet<string> = new Set()): TimelineStep[] {
  const steps = new Map<string, TimelineStep>()
  for (const { kind, stepId, at, attempt, payload, meta } of events) {
    const atMs = Date.parse(at)
    const known = steps.get(stepId)
    if (kind === 'step_started') {
      const step = known ?? begun(stepId, meta, replayed.has(stepId))
      steps.set(stepId, step)
      end(step, atMs)
      step.status = 'running'
      step.attempt = attempt
      delete step.error
      step.pieces.push({ kind: 'ran', fromMs: atMs })
      continue
    }
    if (known === undefined) continue
    known.attempt = attempt
    // Attempts that came to nothing were paid for as well.
    known.tokensIn += meta.tokensIn ?? 0
    known.tokensOut += meta.tokensOut ?? 0
    known.costUsd = Math.round((known.costUsd + (meta.costUsd ?? 0)) * 1e9) / 1e9
    switch (kind) {
      case 'step_completed':
        begunAnew(known)
        end(known, atMs)
        known.status = 'completed'
        // It came right in the end: what went wrong on the way is in its bars.
        delete known.error
        known.output = payload.output
        if (meta.model !== undefined) known.model = meta.model
        if (meta.gatesFailed !== undefined) known.gatesFailed = meta.gatesFailed
        break
      case 'step_failed':
        begunAnew(known)
        end(known, atMs, 'failed')
        known.status = 'failed'
        known.error = `${String(payload.code)}: ${String(payload.error)}`
        break
      case 'step_retrying':
        end(known, atMs, 'failed')
        known.error = `${String(payload.code)}: ${String(payload.error)}`
        known.pieces.push({ kind: 'delay', fromMs: atMs })
        break
      case 'step_waiting':
        end(known, atMs)
        known.status = 'waiting'
        known.pieces.push({ kind: 'wait', fromMs: atMs })
        break
      default:
        break
    }
  }
  return [...steps.values()]
}

/** What stands still because an attempt failed: a sentence for each step that waits for its next one. */
export function pausesOf(events: readonly TimelineEvent[], nowMs: number): string[] {
  const last = new Map<string, TimelineEvent>()
  for (const event of events) last.set(event.stepId, event)
  return [...last.values()].flatMap(({ kind, stepId, payload }) => {
    if (kind !== 'step_retrying' || Number(payload.delayMs) === 0) return []
    const left = Math.ceil((Date.parse(String(payload.nextAt)) - nowMs) / 1000)
    const when = left > 0 ? `in ${left} s` : 'now'
    const billed = payload.unbilled === true ? ' Nothing of it is billed.' : ''
    return [
      `${stepId} is tried again ${when}. Attempt ${payload.attempt} of ${payload.of} failed: ${payload.error}.${billed}`,
    ]
  })
}

function begun(stepId: string, meta: TimelineEvent['meta'], replayed: boolean): TimelineStep {
  return {
    stepId,
    kind: meta.stepKind ?? 'tool',
    name: meta.name ?? '',
    status: 'running',
    attempt: 1,
    pieces: [],
    tokensIn: 0,
    tokensOut: 0,
    costUsd: 0,
    copied: meta.copiedFrom !== undefined,
    replayed,
    ...(meta.inputHash !== undefined && { inputHash: meta.inputHash }),
  }
}

/** An attempt that a recovery makes in the place of one that was cut off has no event of its own beginning: it began as the recovery came. */
function begunAnew({ pieces }: TimelineStep): void {
  const last = pieces.at(-1)
  if (last?.kind === 'delay' && last.toMs === undefined) last.kind = 'ran'
}

function end({ pieces }: TimelineStep, atMs: number, as?: 'failed'): void {
  const last = pieces.at(-1)
  if (last === undefined || last.toMs !== undefined) return
  last.toMs = atMs
  if (as !== undefined && last.kind === 'ran') last.kind = as
}

/** The same from the API's list of steps, which knows less of what was between begin and end. */
export function timelineOfSteps(steps: readonly Step[]): TimelineStep[] {
  return steps.map(({ startedAt, finishedAt, ...step }) => ({
    ...step,
    pieces: [
      {
        kind: step.status === 'failed' ? 'failed' : step.status === 'waiting' ? 'wait' : 'ran',
        fromMs: Date.parse(startedAt),
        ...(finishedAt !== undefined && { toMs: Date.parse(finishedAt) }),
      },
    ],
  }))
}

/**
 * What a call was given, where the journal has it: the answer of the model that asked for the call. `tool-3-2` is the second call of the
 * third turn.
 */
export function inputOf(stepId: string, events: readonly TimelineEvent[]): unknown {
  const [, turn, call] = /^[a-z]+-(\d+)-(\d+)$/.exec(stepId) ?? []
  const asked = events.findLast(one => one.kind === 'step_completed' && one.stepId === `model-${turn}`)?.payload.output
  if (typeof asked !== 'object' || asked === null || !('toolCalls' in asked) || !Array.isArray(asked.toolCalls)) {
    return undefined
  }
  const found: unknown = asked.toolCalls[Number(call) - 1]
  return typeof found === 'object' && found !== null && 'arguments' in found ? found.arguments : undefined
}

export interface Span {
  fromMs: number
  toMs: number
}

/** From the first thing that happened to the last; what still goes on reaches to `nowMs`. */
export function spanOf(steps: readonly TimelineStep[], nowMs: number): Span {
  let fromMs = Number.POSITIVE_INFINITY
  let toMs = 0
  for (const { pieces } of steps) {
    for (const piece of pieces) {
      fromMs = Math.min(fromMs, piece.fromMs)
      toMs = Math.max(toMs, piece.toMs ?? nowMs)
    }
  }
  return fromMs > toMs ? { fromMs: nowMs, toMs: nowMs + 1 } : { fromMs, toMs: Math.max(toMs, fromMs + 1) }
}

export interface Bar {
  x: number
  width: number
  className: string
}

/** How wide a bar field is, in its own units. */
export const BAR_WIDTH = 1000
const LEAST = 4

/** Where the pieces of a step stand between begin and end of a run. */
export function barsOf({ pieces, kind }: TimelineStep, { fromMs, toMs }: Span): Bar[] {
  const scale = BAR_WIDTH / (toMs - fromMs)
  return pieces.map(piece => {
    const width = Math.min(BAR_WIDTH, Math.max(LEAST, ((piece.toMs ?? toMs) - piece.fromMs) * scale))
    const x = Math.max(0, Math.min((piece.fromMs - fromMs) * scale, BAR_WIDTH - width))
    return { x, width, className: classOf(piece.kind, kind) }
  })
}

function classOf(piece: Piece['kind'], step: string): string {
  if (piece === 'ran') return step === 'model' ? 'c-model' : step === 'timer' || step === 'signal' ? 'c-rest' : 'c-tool'
  return `c-${piece}`
}

/** How long a step took, waits and delays included. */
export function stepDurationMs({ pieces, status }: TimelineStep): number | undefined {
  const last = pieces.at(-1)
  if (status === 'running' || status === 'waiting' || last?.toMs === undefined) return undefined
  return last.toMs - pieces[0]!.fromMs
}

/** What is to be known of a step besides its bar, in words. */
export function marksOf({ status, attempt, gatesFailed = [], replayed, copied }: TimelineStep): string[] {
  return [
    ...(status === 'completed' ? [] : [status]),
    ...(attempt > 1 ? [`attempt ${attempt}`] : []),
    ...(gatesFailed.length > 0 ? [`gates failed: ${gatesFailed.join(', ')}`] : []),
    ...(replayed ? ['replayed'] : []),
    ...(copied ? ['copied'] : []),
  ]
}

export function stepName({ stepId, name }: Pick<TimelineStep, 'stepId' | 'name'>): string {
  return name === '' ? stepId : `${stepId} ${name}`
}
