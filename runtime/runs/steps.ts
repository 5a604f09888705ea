import { fromUsd, toUsd } from '../../shared/money/money.ts'
import type { Step } from '../../shared/wire/runtime/run.ts'
import type { JournalEntry } from '../execution/journal/event.ts'
import { UNCERTAIN } from '../execution/journal/history.ts'
import type { RunStore } from './store.ts'

/** The steps of a run as its journal tells them, in the order they started. Results up to `recoverySeq` were used again. */
export function stepsOf(events: Iterable<JournalEntry>, recoverySeq: number): Step[] {
  const steps = new Map<string, Step>()
  for (const { kind, stepId, attempt, at, payload, meta, seq } of events) {
    const step = steps.get(stepId)
    if (kind === 'step_started' && step === undefined) {
      steps.set(stepId, {
        stepId,
        kind: meta.stepKind ?? 'tool',
        name: meta.name ?? '',
        status: 'running',
        attempt,
        startedAt: at,
        tokensIn: 0,
        tokensOut: 0,
        costUsd: 0,
        replayed: false,
        copied: meta.copiedFrom !== undefined,
      })
      continue
    }
    if (step === undefined) continue
    step.attempt = attempt
    // Attempts that came to nothing were paid for as well.
    step.tokensIn += meta.tokensIn ?? 0
    step.tokensOut += meta.tokensOut ?? 0
    step.costUsd = toUsd(fromUsd(step.costUsd) + fromUsd(meta.costUsd ?? 0))
    switch (kind) {
      case 'step_started':
        step.status = 'running'
        delete step.error
        break
      case 'step_completed':
        Object.assign(step, {
          status: 'completed',
          finishedAt: at,
          replayed: seq <= recoverySeq,
          ...(meta.durationMs !== undefined && { durationMs: meta.durationMs }),
          ...(meta.provider !== undefined && { provider: meta.provider }),
          ...(meta.model !== undefined && { model: meta.model }),
        })
        break
      case 'step_failed':
        step.status = payload.code === 'step_uncertain' ? 'uncertain' : 'failed'
        step.finishedAt = at
        step.error = String(payload.error)
        break
      case 'step_retrying':
        step.status = payload.code === UNCERTAIN ? 'uncertain' : 'running'
        step.error = String(payload.error)
        break
      case 'step_waiting':
        step.status = 'waiting'
        break
      default:
        break
    }
  }
  return [...steps.values()]
}

/** In place of an output that is read where it is needed. */
const LONG = Symbol('an output that is not held')
const LONG_CHARACTERS = 4096
const PAGE = 1000

/** A journal without the long outputs of its steps, which may be hundreds of megabytes together. */
export async function journalOutline(runs: Pick<RunStore, 'page'>, runId: string): Promise<JournalEntry[]> {
  const found: JournalEntry[] = []
  for (let isLast = false; !isLast; ) {
    const page = await runs.page(runId, found.length + 1, PAGE)
    found.push(...page.entries.map(withoutLongOutput))
    isLast = page.isLast || page.entries.length === 0
  }
  return found
}

export const isLeftOut = (output: unknown): boolean => output === LONG

/** The output of an event of an outline, as the journal has it. */
export async function outputAt(runs: Pick<RunStore, 'events'>, runId: string, seq: number): Promise<unknown> {
  const [entry] = await runs.events(runId, seq, 1)
  if (entry?.seq !== seq) throw new Error(`run ${runId} lacks the event ${seq}`)
  return entry.payload.output
}

function withoutLongOutput(entry: JournalEntry): JournalEntry {
  const { output, ...rest } = entry.payload
  // What a human decided says what a fork takes over.
  const isKept = entry.stepId.startsWith('approval-') || !isLong(output)
  return isKept ? entry : { ...entry, payload: { ...rest, output: LONG } }
}

function isLong(value: unknown): boolean {
  let room = LONG_CHARACTERS
  const fits = (one: unknown): boolean => {
    room -= typeof one === 'string' ? one.length : 8
    if (room < 0 || typeof one !== 'object' || one === null) return room >= 0
    return Object.entries(one).every(([name, member]) => fits(name) && fits(member))
  }
  return !fits(value)
}
