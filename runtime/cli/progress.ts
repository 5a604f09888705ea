import type { RunEventData } from '../../shared/wire/runtime/journal.ts'

/** The events of a run as lines: what began, what came of it, and what it has cost so far. */
export function progress() {
  const names = new Map<string, string>()
  let spent = 0
  const name = (stepId: string) => `${stepId.padEnd(14)} ${names.get(stepId) ?? ''}`.trimEnd()

  return {
    of({ kind, stepId, payload, meta }: RunEventData): string[] {
      switch (kind) {
        case 'step_started':
          if (meta.name !== undefined) names.set(stepId, meta.name)
          return []
        case 'step_completed': {
          spent += meta.costUsd ?? 0
          const took = meta.durationMs === undefined ? '' : `  ${seconds(meta.durationMs)}`
          return [`ok    ${name(stepId)}${took}  ${dollars(spent)}`]
        }
        case 'step_failed':
          return [`FAIL  ${name(stepId)}  ${String(payload.code)}: ${firstLine(payload.error)}`]
        case 'step_retrying':
          return [`again ${name(stepId)}  ${String(payload.code)}: ${firstLine(payload.error)}`]
        case 'step_waiting':
          return [
            `WAITS ${name(stepId)}  ${String(payload.reason)}: ${firstLine(payload.prompt)}`,
            `      runtime approvals approve ${String(payload.approvalId)}`,
          ]
        case 'anomaly_detected':
          return [`!     ${firstLine(payload.message)}`]
        case 'confidence_evaluated':
          return [
            `      confidence ${String(payload.score)} of ${String(payload.threshold)}: ${String(payload.decision)}`,
          ]
        default:
          return []
      }
    },
  }
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** Nano-dollars are shown as far as they mean something. */
function dollars(usd: number): string {
  return `${usd === 0 ? '0' : usd.toFixed(usd < 0.01 ? 6 : 4)} USD`
}

function firstLine(text: unknown): string {
  return String(text).split('\n', 1)[0]?.slice(0, 160) ?? ''
}
