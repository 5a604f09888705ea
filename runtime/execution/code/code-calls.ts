import { canonicalize } from '../../../shared/sign/jcs.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import type { CodeModel } from '../../../shared/wire/runtime/step-protocol.ts'
import { type Effect, interruptedDefault } from '../../../shared/wire/runtime/tool.ts'
import { AllSuspended, RunFailure, StepFailure, Suspended, type SuspendedUntil } from '../failure.ts'
import { type AgentRun, askModel, type Loop, startLoop } from '../harness/agent-run.ts'
import { loopDetector, watch } from '../harness/anomalies.ts'
import { callTool } from '../harness/tool-calls.ts'
import type { JournalEntry } from '../journal/event.ts'
import { wellFormed } from '../journal/well-formed.ts'
import { provenance, type SandboxOfRun } from '../sandbox/run-sandbox.ts'
import type { Steps } from '../step.ts'
import type { StepResult } from '../step-spec.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'

/** The program sent what the protocol does not allow; it gets the reason, and may go on. */
export class ProtocolFault extends Error {
  override name = 'ProtocolFault'
  readonly status: 400 | 404 | 409
  constructor(status: 400 | 404 | 409, message: string) {
    super(message)
    this.status = status
  }
}

export interface CodeRun extends AgentRun {
  sandbox: SandboxOfRun
  /** What an earlier life of the program asked for. */
  recorded: ReadonlyMap<number, CodeCall>
  /** `wait` as a call of its own: it is there whether the manifest lists it or not. */
  wait: ExposedTool
}

/** The begin of an attempt of a step whose function runs inside the sandbox. */
interface Attempt {
  stepId: string
  attempt: number
  idempotencyKey: string
}

interface OpenStep {
  resolve: (result: StepResult) => void
  reject: (error: StepFailure) => void
  /** The attempt after this one, or the end of the step. */
  next: PromiseWithResolvers<Attempt | undefined>
  done: Promise<unknown>
}

/** Makes one call at its place among those of the program. */
type MakeCall = <T>(name: string, input: unknown, make: (place: number, own: Loop) => Promise<T>) => Promise<T>

/** Remembers what a program may die of, if it does not catch it. */
type Failed = (kind: string, stepId: string, error: StepFailure) => StepFailure

/** The steps whose functions run inside the sandbox: the program begins each attempt, makes it and says how it went. */
function programSteps(run: CodeRun, call: MakeCall, failed: Failed) {
  const open = new Map<string, OpenStep>()
  /** A step has started and is not over: what runs then is its function, which makes no calls of its own. */
  let inStep = false

  /** Settles with the attempt that begins, or with nothing once the step is over. */
  async function nextAttempt(stepId: string): Promise<Attempt | undefined> {
    const step = open.get(stepId)
    if (step === undefined) return undefined
    return Promise.race([step.next.promise, step.done.then(() => undefined)])
  }

  return {
    isOpen: () => inStep,

    /** Begins a step: its recorded output, or the attempt that the program is to make. */
    async begin({ name, input, effect }: { name: string; input?: unknown; effect: Effect }) {
      const answer = Promise.withResolvers<
        { stepId: string; cached: true; output: unknown } | (Attempt & { cached: false })
      >()
      if (inStep)
        throw new ProtocolFault(409, `a step is open: its function makes no calls of its own, and ${name} is one`)
      const done = call(`step ${name}`, input ?? null, (place, own) => {
        const stepId = `code-${name}-${place}`
        const end = Promise.withResolvers<unknown>()
        end.promise.catch(() => undefined)
        const spec = { stepId, kind: 'code' as const, name, effect, onInterrupted: interruptedDefault(effect) }
        return own.steps
          .run(spec, ({ attempt, key, signal }) => {
            const { promise, resolve, reject } = Promise.withResolvers<StepResult>()
            const before = open.get(stepId)
            const next = Promise.withResolvers<Attempt | undefined>()
            open.set(stepId, { resolve, reject, next, done: end.promise })
            const now = { stepId, attempt, idempotencyKey: key }
            signal.addEventListener('abort', () => reject(new StepFailure('aborted', 'the program was ended')))
            if (before) before.next.resolve(now)
            else answer.resolve({ ...now, cached: false })
            return promise
          })
          .then(({ output }) => {
            end.resolve(output)
            return { stepId, output }
          })
          .catch((error: unknown) => {
            end.reject(error)
            throw error instanceof StepFailure ? failed('code', stepId, error) : error
          })
          .finally(() => {
            open.delete(stepId)
            inStep = false
          })
      })
      inStep = true
      done.then(({ stepId, output }) => answer.resolve({ stepId, cached: true, output }), answer.reject)
      return answer.promise
    },

    /** The program made the attempt. Files that it wrote are kept before what it says is on record. */
    async complete(stepId: string, output: unknown): Promise<void> {
      const step = open.get(stepId)
      if (step === undefined) throw new ProtocolFault(409, `no step ${stepId} is open`)
      const room = await run.sandbox.get()
      await room.keep()
      if (open.get(stepId) !== step) throw new ProtocolFault(409, `the step ${stepId} was completed twice`)
      step.resolve({ output: run.sandbox.withoutSecretsIn(output ?? null), ...provenance(room) })
      await step.done
    },

    /** The attempt failed; gives the next one once it is due, or nothing where there is none. */
    async fail(stepId: string, message: string, transient: boolean): Promise<Attempt | undefined> {
      const step = open.get(stepId)
      if (step === undefined) throw new ProtocolFault(409, `no step ${stepId} is open`)
      const next = nextAttempt(stepId)
      step.reject(new StepFailure('code_failed', run.sandbox.withoutSecrets(message), { transient }))
      return next.catch((error: unknown) => {
        if (error instanceof StepFailure) return undefined
        throw error
      })
    },
  }
}

export type CodeCalls = ReturnType<typeof codeCalls>

/**
 * What a program in a sandbox may ask for, as steps of its run. Calls are numbered as they come: after a restart the program
 * begins again and is given what is on record at each place, so a step is made once however often the program is.
 */
export function codeCalls(run: CodeRun, stop: (reason: unknown) => void) {
  const loop = startLoop({ ...run, opening: [] })
  const circle = loopDetector()
  const parked: SuspendedUntil[] = []
  let made = 0
  let busy = 0
  let lastFailure: { kind: string; stepId: string; message: string } | undefined

  const redacted = <T>(value: T): T => run.redact?.value(value) ?? value

  /** The run lets go once nothing but waiting calls is open. */
  function suspendWhenIdle(): void {
    if (parked.length > 0 && busy === parked.length) stop(new AllSuspended(parked))
  }

  /** One call at its place; whatever is no failure of the call itself ends the program. */
  async function call<T>(name: string, input: unknown, make: (place: number, own: Loop) => Promise<T>): Promise<T> {
    // What is waited for is waited for alone: a call that comes later is made when the program begins again.
    if (parked.length > 0) return new Promise(() => undefined)
    if (steps.isOpen()) {
      throw new ProtocolFault(409, `a step is open: its function makes no calls of its own, and ${name} is one`)
    }
    const place = ++made
    busy++
    try {
      // What a program was told again after a restart is redacted, and what it makes of it has to be the same call.
      const inputHash = sha256Hex(canonicalize(redacted(wellFormed(input) ?? null)), run.sha256)
      checkReplay(run.recorded, place, { name, inputHash })
      const own: Steps = {
        run: (spec, act) =>
          loop.steps.run({ ...spec, inputHash, intent: { ...spec.intent, call: place, callName: name } }, act),
        get started() {
          return loop.steps.started
        },
      }
      const result = await make(place, { ...loop, steps: own })
      lastFailure = undefined
      await watch({ ...loop, steps: own }, `code-${place}`, circle.turn(`${name} ${inputHash}`, String(place)))
      busy--
      suspendWhenIdle()
      return result
    } catch (error) {
      if (error instanceof Suspended) {
        parked.push(error.until)
        suspendWhenIdle()
        return new Promise(() => undefined)
      }
      busy--
      suspendWhenIdle()
      if (error instanceof StepFailure || error instanceof ProtocolFault) throw error
      stop(error)
      throw error
    }
  }

  const failed: Failed = (kind, stepId, error) => {
    lastFailure = { kind, stepId, message: error.message }
    return error
  }

  const steps = programSteps(run, call, failed)

  return {
    ...simpleCalls(run, call, failed),

    begin: steps.begin,

    complete: steps.complete,

    fail: steps.fail,

    /** Whether the program may end here; a call that is open would be left without an end. */
    finish(): void {
      if (busy > 0) throw new ProtocolFault(409, 'a call is still open: finish after it has been answered')
      checkAllReplayed(run.recorded, made)
    },

    /** What a program died of that did not catch the failure of its last call. */
    uncaught: (): RunFailure | undefined => {
      if (lastFailure === undefined) return undefined
      const { kind, message, stepId } = lastFailure
      const code = CODE_OF[kind]
      return code && new RunFailure(code, message, { stepId })
    },
  }
}

/** The calls that need no function of the program. */
function simpleCalls(run: CodeRun, call: MakeCall, failed: Failed) {
  const redacted = <T>(value: T): T => run.redact?.value(value) ?? value

  return {
    model: (asked: CodeModel) =>
      call('model', asked, async (place, own) => {
        const { prompt, messages = [{ role: 'user' as const, content: prompt ?? '' }] } = asked
        const request = {
          system: asked.system === undefined ? run.manifest.systemPrompt : redacted(asked.system),
          messages: messages.map(({ role, content }) =>
            role === 'user' ? { role, text: redacted(content) } : { role, text: redacted(content), toolCalls: [] },
          ),
          tools: [],
          maxOutputTokens: Math.min(
            asked.maxOutputTokens ?? Number.POSITIVE_INFINITY,
            run.manifest.limits.maxOutputTokens,
          ),
          ...(asked.temperature !== undefined && { temperature: asked.temperature }),
        }
        const stepId = `model-${place}`
        const { text, stop: ended } = await askModel(own, { stepId, kind: 'model', request }).catch(error => {
          throw error instanceof StepFailure ? failed('model', stepId, error) : error
        })
        return { text, stop: ended }
      }),

    tool: (name: string, given: Record<string, unknown>) =>
      call(`tool ${name}`, given, async (place, own) => {
        const said = await callTool(own, place, 1, { name, arguments: given }, [])
        if (!said.failed) return { output: said.output }
        const { code, message, kind } = said
        throw failed(kind, `${kind}-${place}-1`, new StepFailure(code ?? 'refused', message))
      }),

    approval: (prompt: string) =>
      call('approval', { prompt }, async (place, own) => {
        const stepId = `approval-${place}`
        const spec = { stepId, kind: 'approval' as const, name: 'question', effect: 'idempotent' as const }
        const { output } = await own.steps.run({ ...spec, onInterrupted: 'retry' }, async ({ attempt }) => {
          const decided = await own.approvals.ask({ stepId, attempt, reason: 'question', prompt })
          const { approved, comment, output: answer } = decided
          return {
            output: { approved, ...(comment !== undefined && { comment }), ...(answer !== undefined && { answer }) },
          }
        })
        return output
      }),

    sleep: (given: Record<string, unknown>) =>
      call('sleep', given, async (place, own) => {
        const stepId = `timer-${place}`
        const { wait } = run
        const { output } = await own.steps.run(
          {
            stepId,
            kind: 'timer',
            name: 'sleep',
            effect: 'idempotent',
            onInterrupted: 'retry',
            intent: wait.intent?.(given) ?? {},
          },
          made => wait.call(given, { runId: run.runId, turn: place, index: 1, stepId }, made),
        )
        return output
      }),
  }
}

const CODE_OF: Readonly<Record<string, RunFailure['code']>> = {
  model: 'model_error',
  tool: 'tool_failed',
  exec: 'tool_failed',
  connector: 'connector_failed',
  mcp: 'mcp_failed',
  subagent: 'subagent_failed',
}

/** What a program asked for at one place in the order of its calls. */
interface CodeCall {
  name: string
  inputHash: string
}

/** The calls of a program as its journal tells them, by their place from 1 on. Places whose call made no step are missing. */
export function recordedCalls(events: Iterable<JournalEntry>): Map<number, CodeCall> {
  const calls = new Map<number, CodeCall>()
  for (const { kind, meta } of events) {
    const { call, callName, inputHash } = meta
    if (kind !== 'step_started' || typeof call !== 'number' || calls.has(call)) continue
    calls.set(call, { name: String(callName), inputHash: String(inputHash) })
  }
  return calls
}

/** Ends the run when a program that began again does not ask for what it asked for before (docs/spec/runtime.md §3). */
function checkReplay(recorded: ReadonlyMap<number, CodeCall>, place: number, now: CodeCall): void {
  const before = recorded.get(place)
  if (before === undefined || (before.name === now.name && before.inputHash === now.inputHash)) return
  const what = before.name === now.name ? `${now.name} with another input` : `${now.name}, and was ${before.name}`
  throw new RunFailure(
    'nondeterministic_replay',
    `call ${place} of the program is ${what}: what changes from one execution to the next belongs into a step`,
  )
}

/** A program that ends earlier than it did before is another program. */
function checkAllReplayed(recorded: ReadonlyMap<number, CodeCall>, made: number): void {
  const missing = [...recorded.keys()].find(place => place > made)
  if (missing === undefined) return
  const { name } = recorded.get(missing)!
  throw new RunFailure(
    'nondeterministic_replay',
    `the program ended after ${made} calls, and before it made a call ${missing}, ${name}`,
  )
}
