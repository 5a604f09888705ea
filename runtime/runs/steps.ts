import { fromUsd, toUsd } from '../../shared/money/money.ts'
import type { Step } from '../../shared/wire/runtime/run.ts'
import type { JournalEntry } from '../execution/journal/event.ts'
import { UNCERTAIN } from '../execution/journal/history.ts'

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
