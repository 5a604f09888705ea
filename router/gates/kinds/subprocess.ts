import { z } from 'zod'
import { expected, text } from '../../../shared/wire/bounds.ts'
import { choice, uniqueList, variable } from '../../config/table-fields.ts'
import { defineGate } from '../define-gate.ts'
import { broken, type GateVerdict } from '../gate.ts'
import { gateDocumentText } from '../gate-document.ts'
import type { ProcessOutcome } from '../gate-host.ts'
import { readVerdictText } from '../verdict.ts'

const STDOUT_LIMIT = 65_536
const STDERR_LIMIT = 8192

export interface Program {
  readonly cmd: readonly string[]
  readonly cwd: string | null
  readonly envPass: readonly string[]
  readonly stdin: 'json' | 'text'
}

const encoder = new TextEncoder()

/** A program of the operator judges the answer (docs/spec/router.md §5.3). */
export const subprocess = defineGate({
  kind: 'subprocess',
  about:
    'A program of yours judges the answer. It gets the variables PATH, LANG, TZ, TMPDIR, HOME and `ROUTER_GATE_ID`. In a container, start the router under an init (`docker run --init`): what the program leaves running is waited for by process 1.',
  slow: true,
  scores: true,
  keys: {
    cmd: z.array(text(1, 32_768), { error: expected('an array of strings, the program first') }).min(1),
    cwd: text(1, 4096).optional(),
    env_pass: uniqueList(variable).default([]),
    stdin: choice(['json', 'text']).default('json'),
  },
  words: {
    cmd: 'The program and its arguments.',
    cwd: { about: 'The folder that it runs in.', unset: "the router's" },
    env_pass: 'Other variables that it gets.',
    stdin: 'What it reads: a JSON document with request and answer, or the text of the answer.',
  },
  resolve({ cmd, cwd = null, env_pass, stdin }, { host, report }): Program {
    if (!host.hasProcesses) report(['kind'], 'this host cannot start processes: use an http gate instead')
    return { cmd, cwd, envPass: env_pass, stdin }
  },
  build({ id, cmd, cwd, envPass, stdin }, { runProcess }) {
    if (runProcess === undefined)
      return { code: 'host', message: 'this host cannot start processes: use an http gate or run on Node' }
    return {
      async run(input, signal) {
        const document = stdin === 'text' ? input.choice.text : gateDocumentText(id, input)
        const outcome = await runProcess(
          {
            cmd,
            cwd,
            envPass,
            env: { ROUTER_GATE_ID: id },
            stdin: encoder.encode(document),
            stdoutLimit: STDOUT_LIMIT,
            stderrLimit: STDERR_LIMIT,
          },
          signal,
        )
        return readOutcome(outcome)
      },
    }
  },
})

function readOutcome(outcome: ProcessOutcome): GateVerdict {
  if (outcome.kind !== 'exited') return broken(outcome.kind === 'aborted' ? 'timeout' : outcome.kind)
  if (outcome.code !== 0) return broken('exit_nonzero')
  return readVerdictText(lastLine(new TextDecoder().decode(outcome.stdout)))
}

/** The last line that is not empty: programs print before they answer. */
const lastLine = (text: string): string => text.split('\n').findLast(line => line.trim() !== '') ?? ''
