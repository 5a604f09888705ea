import { type Style, style } from '../../shared/cli/style.ts'
import { counted } from '../../shared/cli/text-table.ts'
import type { Reached, RunEventData } from '../../shared/wire/runtime/journal.ts'
import { printable } from './terminal.ts'

/** The events of a run as lines that a terminal may show: what began, what came of it, and what it has cost so far. */
export function progress({ green, red, yellow, dim }: Style = style(false)) {
  const names = new Map<string, string>()
  const started = new Map<string, number>()
  let spent = 0
  let unpriced = 0
  const name = (stepId: string) => `${printable(stepId).padEnd(14)} ${names.get(stepId) ?? ''}`.trimEnd()

  return {
    of({ kind, stepId, at, payload, meta }: RunEventData): string[] {
      switch (kind) {
        case 'step_started':
          started.set(stepId, Date.parse(at))
          if (meta.name !== undefined) names.set(stepId, printable(meta.name))
          return []
        case 'step_completed': {
          spent += meta.costUsd ?? 0
          if (meta.unpriced) unpriced++
          // A timer measures no work of its own: what it took is what has passed since it began.
          const passed = Date.parse(at) - (started.get(stepId) ?? Date.parse(at))
          const took = `  ${seconds(Math.max(meta.durationMs ?? 0, passed))}`
          return [
            `${green('ok')}    ${name(stepId)}${dim(`${took}  ${dollars(spent)}${unpricedText(unpriced)}`)}`,
            ...(meta.gatesFailed ? [yellow(`      gates failed: ${firstLine(meta.gatesFailed.join(', '))}`)] : []),
            ...(meta.egress ?? []).map(one => dim(`      ${reachedText(one)}`)),
          ]
        }
        case 'step_failed':
          return [`${red('FAIL')}  ${name(stepId)}  ${firstLine(payload.code)}: ${firstLine(payload.error)}`]
        case 'step_retrying':
          return [`${yellow('again')} ${name(stepId)}  ${firstLine(payload.code)}: ${firstLine(payload.error)}`]
        case 'step_waiting':
          return [
            `${yellow('WAITS')} ${name(stepId)}  ${firstLine(payload.reason)}: ${firstLine(payload.prompt)}`,
            `      runtime approvals approve ${firstLine(payload.approvalId)}`,
          ]
        case 'anomaly_detected':
          return [`${yellow('!')}     ${firstLine(payload.message)}`]
        case 'confidence_evaluated':
          return [
            `      confidence ${firstLine(payload.score)} of ${firstLine(payload.threshold)}: ${firstLine(payload.decision)}`,
          ]
        default:
          return []
      }
    },
  }
}

function reachedText({ host, port, address, calls, refused, sentBytes, receivedBytes }: Reached): string {
  const place = printable(`${host}:${port}${address === undefined ? '' : ` (${address})`}`)
  if (calls === 0 && sentBytes + receivedBytes === 0) return `was refused ${place}, ${refused} times`
  return `reached ${place}: ${calls} calls, ${sentBytes} bytes out, ${receivedBytes} in`
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** Nano-dollars are shown as far as they mean something. */
function dollars(usd: number): string {
  return `${usd === 0 ? '0' : usd.toFixed(usd < 0.01 ? 6 : 4)} USD`
}

/** What is said beside a cost that leaves calls out. */
export const unpricedText = (calls = 0): string => (calls === 0 ? '' : `, ${counted(calls, 'call')} without a price`)

function firstLine(text: unknown): string {
  return printable(String(text).split('\n', 1)[0]?.slice(0, 160) ?? '')
}
