import { broken, type GateRun, type GateVerdict } from './gate.ts'
import type { SubprocessConfig } from './gate-config.ts'
import { gateDocumentText } from './gate-document.ts'
import type { ProcessOutcome, ProcessRunner } from './process-runner.ts'
import { readVerdictText } from './verdict.ts'

const STDOUT_LIMIT = 65_536
const STDERR_LIMIT = 8192

const encoder = new TextEncoder()

/** A program of the operator judges the answer (docs/spec/router.md §5.3). */
export function subprocessGate({ id, cmd, cwd, envPass, stdin }: SubprocessConfig, run: ProcessRunner): GateRun {
  return async (input, signal) => {
    const told = stdin === 'text' ? input.choice.text : gateDocumentText(id, input)
    const job = { cmd, cwd, envPass, env: { ROUTER_GATE_ID: id }, stdoutLimit: STDOUT_LIMIT, stderrLimit: STDERR_LIMIT }
    return readOutcome(await run({ ...job, stdin: encoder.encode(told) }, signal))
  }
}

function readOutcome(outcome: ProcessOutcome): GateVerdict {
  if (outcome.kind !== 'exited') return broken(outcome.kind === 'aborted' ? 'timeout' : outcome.kind)
  if (outcome.code !== 0) return broken('exit_nonzero')
  return readVerdictText(lastLine(new TextDecoder().decode(outcome.stdout)))
}

/** The last line that is not empty: programs print before they answer. */
const lastLine = (text: string): string => text.split('\n').findLast(line => line.trim() !== '') ?? ''
