import { toHex } from '../../../shared/sign/bytes.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { RunFailure, StepFailure } from '../failure.ts'
import { outputCheck } from '../harness/output.ts'
import { plainMessage } from '../journal/well-formed.ts'
import { provenance } from '../sandbox/run-sandbox.ts'
import type { CommandEnd } from '../sandbox/sandboxes.ts'
import type { Steps } from '../step.ts'
import { ENTRYPOINT_STEP } from '../step-spec.ts'
import { type CodeRun, codeCalls } from './code-calls.ts'
import { stepProtocol } from './step-protocol.ts'

/** On the loopback of the sandbox; the agent inside listens, and the host answers. */
const STEP_PORT = 7701
/** Of what the program prints; it is kept in part. */
const OUTPUT_BYTES = 8 * 1024 * 1024
const LOG_CHARACTERS = 16 * 1024
/** Of these, what the failure repeats: Node's report of a module that it cannot read has some 900. */
const SAID_CHARACTERS = 1500
/** For the kill, which is the run's own time limit. */
const GRACE_MS = 10_000

export interface CodeAgentRun extends CodeRun {
  entrypoint: NonNullable<Manifest['entrypoint']>
  input: Readonly<Record<string, unknown>>
  /** For the step that is the program; `steps` are those inside it. */
  whole: Steps
  /** Ends every step inside that is open, without a word in the journal. */
  abandon: (reason: unknown) => void
}

/** Runs a code agent: its program in the sandbox, from the beginning, with what is on record given back to it. */
export async function codeAgent(run: CodeAgentRun): Promise<Record<string, unknown>> {
  const { whole, entrypoint } = run
  try {
    const { output } = await whole.run(
      {
        stepId: ENTRYPOINT_STEP,
        kind: 'exec',
        name: entrypoint.command,
        maxAttempts: 1,
        effect: 'idempotent',
        onInterrupted: 'retry',
      },
      async ({ signal }) => {
        const room = await run.sandbox.get()
        const { output, ...end } = await program(run, signal)
        return { output: run.sandbox.withoutSecretsIn({ ...end, output }), ...provenance(room) }
      },
    )
    const said = (output as { output: Record<string, unknown> }).output
    speak(run, said)
    return said
  } catch (error) {
    // Not of a call, as those are reported to the program: the sandbox did not start, or ended.
    if (error instanceof StepFailure) {
      const code = error.code === 'exec_failed' ? 'entrypoint_failed' : 'sandbox_failed'
      throw new RunFailure(code, error.message, { stepId: ENTRYPOINT_STEP, cause: error })
    }
    throw error
  }
}

/** In a turn of a session, what the program came to is what is said. */
function speak({ voice }: CodeAgentRun, output: Record<string, unknown>): void {
  if (voice === undefined) return
  const text = typeof output.result === 'string' ? output.result : JSON.stringify(output)
  voice.begin()
  voice.delta(text)
  voice.said({ text, toolCalls: [] })
}

async function program(run: CodeAgentRun, signal: AbortSignal) {
  const { manifest, entrypoint, sandbox, runId } = run
  const room = await sandbox.get()
  const { promise: decided, resolve: finish, reject: stop } = Promise.withResolvers<unknown>()
  decided.catch(() => undefined)
  let outcome: { output: unknown } | undefined
  const calls = codeCalls(run, stop)
  const token = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const earlier = run.opening.length > 1 ? { messages: run.opening } : {}
  const answer = stepProtocol({
    calls,
    token,
    stop,
    finish(output) {
      outcome = { output }
      finish(output)
    },
    input: { input: run.input, ...earlier },
    // Two for a step, and some that are refused.
    maxRequests: manifest.limits.maxSteps * 4 + 1000,
  })
  await room.serve(STEP_PORT, answer)
  const over = new AbortController()
  const ended = room.run(
    {
      argv: [entrypoint.command, ...entrypoint.args],
      env: {
        ...entrypoint.env,
        WAYBILL_STEP_URL: `http://127.0.0.1:${STEP_PORT}`,
        WAYBILL_STEP_TOKEN: token,
        WAYBILL_RUN_ID: runId,
      },
    },
    {
      deadlineMs: manifest.limits.timeoutSeconds * 1000 + GRACE_MS,
      signal: AbortSignal.any([signal, over.signal]),
      outputBytes: OUTPUT_BYTES,
    },
  )
  ended.catch(() => undefined)
  try {
    const first = await Promise.race([
      decided.then(output => ({ finished: true as const, output })),
      ended.then(end => ({ finished: false as const, end })),
    ])
    if (first.finished) return { finished: true, output: outputOf(first.output, manifest) }
    // What it asked for last may have decided the run while its end was on the way.
    if (outcome) return { finished: true, output: outputOf(outcome.output, manifest) }
    return { finished: false, ...ofEnd(first.end, run, calls) }
  } catch (error) {
    // A wait goes on from the files as they are now.
    if (!(error instanceof RunFailure)) {
      over.abort(error)
      await ended.catch(() => undefined)
      if (!signal.aborted) await room.keep()
    }
    throw error
  } finally {
    over.abort(new Error('the program is not needed any more'))
    run.abandon(new RunFailure('entrypoint_failed', 'the program ended under a call'))
  }
}

/** What the end of a program means that did not say that it is finished. */
function ofEnd(end: CommandEnd, run: CodeAgentRun, calls: ReturnType<typeof codeCalls>) {
  const log = run.sandbox.withoutSecrets(end.stderr.slice(-LOG_CHARACTERS))
  const failed = (message: string) => new RunFailure('entrypoint_failed', message, { stepId: ENTRYPOINT_STEP })
  if (end.limit) throw failed(`the program met its limit of ${end.limit.name}: ${end.limit.detail}`)
  if (end.signal !== undefined) throw failed(`the program was ended by ${end.signal}${said(log)}`)
  if (end.exitCode !== 0) {
    throw calls.uncaught() ?? failed(`the program ended with exit code ${end.exitCode}${said(log)}`)
  }
  try {
    calls.finish()
  } catch (error) {
    if (error instanceof RunFailure) throw error
    throw failed('the program ended before its last call was answered')
  }
  // A program without a word of the protocol is one as well: what it printed is its result.
  return { exitCode: 0, log, output: outputOf(end.stdout.replace(/\n$/, ''), run.manifest) }
}

const said = (log: string) => (log.trim() === '' ? '' : `: ${plainMessage(lastLines(log.trim(), SAID_CHARACTERS))}`)

/** The end of a text, in whole lines where it has some. */
function lastLines(text: string, most: number): string {
  if (text.length <= most) return text
  const end = text.slice(-most)
  return end.slice(end.indexOf('\n') + 1)
}

function outputOf(output: unknown, { outputSchema }: Manifest): Record<string, unknown> {
  if (outputSchema !== undefined) {
    const checked = outputCheck(outputSchema)(typeof output === 'string' ? output : JSON.stringify(output))
    if (checked.ok) return checked.output
    throw new RunFailure('output_invalid', checked.problem, { stepId: ENTRYPOINT_STEP })
  }
  const isObject = typeof output === 'object' && output !== null && !Array.isArray(output)
  return isObject ? (output as Record<string, unknown>) : { result: output }
}
