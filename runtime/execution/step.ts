import type { Sha256 } from '../../shared/sign/sha256.ts'
import { isStoreUnavailable, waitingForStore } from '../../shared/sql/db-fault.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { backoffDelay, sleep } from '../../shared/time/sleep.ts'
import { underDeadline, unlessAborted } from '../../shared/time/until-aborted.ts'
import type { EventMeta } from '../../shared/wire/runtime/journal.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { Redaction } from '../privacy/redaction.ts'
import type { Approvals, Decision } from './approvals.ts'
import { type CallCost, costExtras, costMeta, type OpenCalls } from './call-cost.ts'
import type { EngineMetrics } from './engine-metrics.ts'
import { AllSuspended, RunFailure, StepFailure, Suspended } from './failure.ts'
import { countLost, countUnbilled, type History, outputOf, UNCERTAIN } from './journal/history.ts'
import type { RunJournal } from './journal/run-journal.ts'
import { plainMessage, wellFormed } from './journal/well-formed.ts'
import type { RateLimitWait } from './models/model.ts'
import { checkSize, place } from './step-output.ts'
import type { StepCall, StepOutcome, StepResult, StepSpec } from './step-spec.ts'

export interface StepsDeps {
  runId: string
  nodeId: string
  journal: RunJournal
  history: History
  retry: Manifest['retry']
  maxSteps: number
  approvals: Approvals
  clock: Clock
  sha256: Sha256
  /** An output that stands beside the journal, by its digest. */
  blob: (digest: string) => Promise<unknown>
  signal: AbortSignal
  random: () => number
  draining: () => boolean
  /** Where its calls wait for a rate limit. */
  rateLimitWait: RateLimitWait
  /** Where calls say how to find out what they have used, until their result is on record. */
  open: OpenCalls
  metrics: Pick<EngineMetrics, 'steps' | 'replayed'>
  /** What may not be kept; a step gives to others what it kept. */
  redact?: Redaction | undefined
  /** Outputs stand beside the journal, whatever their size, and are dropped with the end of the run. */
  transient?: boolean
}

export type Steps = ReturnType<typeof runSteps>

/**
 * The only door to the outside world from inside a run: the intent is committed, then the call is made, then its result is
 * recorded; the result is durable before the next intent is (docs/spec/runtime.md §5).
 */
export function runSteps(deps: StepsDeps) {
  const { history, clock } = deps
  let started = 0

  return {
    /** Executes a step, or gives back what an earlier execution recorded. */
    async run(spec: StepSpec, call: (call: StepCall) => Promise<StepResult>): Promise<StepOutcome> {
      if (deps.signal.aborted) throw deps.signal.reason
      if (++started > deps.maxSteps) {
        throw new RunFailure('limit_exceeded', `the run needs more than ${deps.maxSteps} steps (limits.maxSteps)`)
      }
      const state = history.steps.get(spec.stepId)
      switch (state?.is) {
        case 'completed':
          deps.metrics.replayed.add(1)
          return { output: await outputOf(state), meta: state.meta, replayed: true }
        case 'failed':
          throw new StepFailure(state.code, state.error, { transient: state.transient })
        case 'open':
          return resume(deps, spec, state, call)
        case 'waiting':
          return spec.kind === 'approval'
            ? attempts(deps, spec, { attempt: state.attempt, intent: state.meta }, call)
            : askWhetherDone(deps, spec, state, call)
        case 'retrying': {
          const pause = Date.parse(state.nextAt) - clock.now().getTime()
          if (pause > 0) await pauseOf(deps, Math.min(pause, deps.retry.maxBackoffMs))
          return attempts(deps, spec, { attempt: state.attempt + 1 }, call)
        }
        case undefined:
          if (deps.draining()) throw new Suspended({ on: 'drain' })
          return attempts(deps, spec, { attempt: 1 }, call)
      }
    },
    get started() {
      return started
    },
  }
}

/** Between two attempts. A process that ends leaves the next one to its successor. */
function pauseOf({ signal, rateLimitWait }: StepsDeps, ms: number): Promise<void> {
  return sleep(ms, AbortSignal.any([signal, rateLimitWait.drained]))
}

async function beginAttempt(deps: StepsDeps, spec: StepSpec, attempt: number): Promise<EventMeta> {
  // In the order of the canonical text, which spares its maker the sorting.
  const meta: EventMeta = {
    idempotencyKey: keyOf(deps, spec.stepId, attempt),
    ...(spec.inputHash !== undefined && { inputHash: spec.inputHash }),
    name: spec.name,
    nodeId: deps.nodeId,
    stepKind: spec.kind,
    ...spec.intent,
  }
  deps.journal.append({ kind: 'step_started', stepId: spec.stepId, attempt, payload: {}, meta }, spec.beside)
  if (meta.request) deps.history.request = meta.request
  deps.history.steps.set(spec.stepId, { is: 'open', attempt, meta, at: deps.clock.now().toISOString(), uncertain: 0 })
  await deps.journal.commit()
  return meta
}

function keyOf(deps: StepsDeps, stepId: string, attempt: number): string {
  return `${deps.runId}:${stepId}:${attempt}`
}

/** Makes the call under the run's signal and the step's own deadline; a call that ignores both is left behind. */
function act(
  deps: StepsDeps,
  spec: StepSpec,
  attempt: number,
  { intent, repeated }: { intent: EventMeta; repeated: boolean },
  call: (call: StepCall) => Promise<StepResult>,
): Promise<StepResult> {
  const { timeoutMs, stepId } = spec
  const metered: StepCall['metered'] = reading => deps.open.set(stepId, reading)
  const make = (signal: AbortSignal) =>
    call({ key: keyOf(deps, stepId, attempt), attempt, signal, intent, repeated, metered })
  if (timeoutMs === undefined) return unlessAborted(deps.signal, make)
  return underDeadline(deps.signal, timeoutMs, make, () => {
    return new StepFailure('timeout', `${spec.name} took longer than ${timeoutMs} ms`)
  })
}

function complete(deps: StepsDeps, spec: StepSpec, attempt: number, result: StepResult, tookMs: number): StepOutcome {
  const made = result.output ?? null
  const output = deps.redact ? deps.redact.value(made) : made
  const { kept, blobs } = place(output, deps.sha256, deps.transient)
  const { spent } = result
  const meta: EventMeta = {
    ...(spent && { costUsd: spent.costNano / 1e9 }),
    durationMs: Math.round(tookMs),
    ...(result.meta && (wellFormed(result.meta) as EventMeta)),
    ...(spent && result.meta?.tokensIn === undefined && { tokensIn: spent.tokensIn }),
    ...(spent && result.meta?.tokensOut === undefined && { tokensOut: spent.tokensOut }),
  }
  for (const draft of result.also ?? []) deps.journal.append(draft)
  const entry = deps.journal.append(
    { kind: 'step_completed', stepId: spec.stepId, attempt, payload: { output: kept }, meta },
    {
      blobs,
      ...(spent && { spent, ...(result.parts && { parts: result.parts }) }),
      ...(result.model !== undefined && { model: result.model }),
      ...(result.isolationUsed !== undefined && { isolationUsed: result.isolationUsed }),
      ...(result.extra && { extra: result.extra }),
    },
  )
  const load = blobs[0] && loader(deps, blobs[0].sha256)
  const state = { is: 'completed' as const, attempt, output: kept, meta, seq: entry.seq }
  deps.history.steps.set(spec.stepId, load ? { ...state, load } : state)
  deps.journal.commitSoon()
  deps.metrics.steps.add(1, { kind: spec.kind, outcome: 'completed' })
  return { output, meta, replayed: false }
}

/** Of its own, since it would hold what it stands beside. */
function loader({ journal, blob }: StepsDeps, digest: string): () => Promise<unknown> {
  return async () => {
    await journal.commit()
    return blob(digest)
  }
}

/** Writes down that an attempt failed; gives the pause before the next, or ends the step. */
async function fail(
  deps: StepsDeps,
  spec: StepSpec,
  attempt: number,
  error: unknown,
  cost: CallCost | undefined,
): Promise<number> {
  const [meta, extraStatements] = [costMeta(cost), costExtras(cost)]
  countLost(deps.history, meta)
  const failure = error instanceof StepFailure ? error : undefined
  const plain = plainMessage(error)
  const message = deps.redact?.text(plain) ?? plain
  const code = failure?.code ?? 'failed'
  const transient = failure?.transient ?? false
  const unbilled = failure?.unbilled ?? false
  const of = attemptsOf(deps, spec, unbilled)
  if (!transient || attempt >= of) {
    const payload = { error: message, code, transient }
    const entry = deps.journal.append(
      { kind: 'step_failed', stepId: spec.stepId, attempt, payload, meta },
      extraStatements,
    )
    deps.history.steps.set(spec.stepId, { is: 'failed', attempt, error: message, code, transient, seq: entry.seq })
    deps.metrics.steps.add(1, { kind: spec.kind, outcome: 'failed' })
    throw new StepFailure(code, message, { transient, cause: error })
  }
  const { backoffMs, maxBackoffMs, jitter } = deps.retry
  const drawn = backoffDelay({ baseMs: backoffMs, maxMs: maxBackoffMs, jitter }, attempt, deps.random)
  const delayMs = Math.min(maxBackoffMs, Math.max(drawn, failure?.retryAfterMs ?? 0))
  const nextAt = new Date(deps.clock.now().getTime() + delayMs).toISOString()
  const payload = { attempt, of, error: message, code, delayMs, nextAt, ...(unbilled && { unbilled }) }
  deps.journal.append({ kind: 'step_retrying', stepId: spec.stepId, attempt, payload, meta }, extraStatements)
  deps.history.retries++
  if (unbilled) countUnbilled(deps.history, spec.stepId)
  deps.history.steps.set(spec.stepId, { is: 'retrying', attempt, meta: {}, nextAt })
  return delayMs
}

/** How many attempts the step has in all, those before among them: patience costs nothing where the last one was not billed. */
function attemptsOf({ retry, history }: StepsDeps, spec: StepSpec, unbilled: boolean): number {
  const billable = spec.maxAttempts ?? retry.maxAttempts
  if (unbilled) return Math.max(billable, retry.unbilledAttempts ?? (billable === 1 ? 1 : UNBILLED_ATTEMPTS))
  return billable + (history.unbilled.get(spec.stepId) ?? 0)
}

/** About a minute with the pauses of a manifest that says nothing of them. */
const UNBILLED_ATTEMPTS = 10

async function attempts(
  deps: StepsDeps,
  spec: StepSpec,
  from: { attempt: number; intent?: EventMeta; repeated?: boolean },
  call: (call: StepCall) => Promise<StepResult>,
): Promise<StepOutcome> {
  let { attempt, intent, repeated = false } = from
  for (;;) {
    if (spec.ready) await spec.ready(deps.rateLimitWait)
    intent ??= await beginAttempt(deps, spec, attempt)
    const before = deps.clock.monotonic()
    let result: StepResult
    try {
      const how = { intent, repeated }
      // Where what it needs of the store was not there, it has not been made, and calls beside it go on.
      result = await waitingForStore(
        () => act(deps, spec, attempt, how, call),
        () => !deps.signal.aborted && !deps.draining(),
      )
      result.output = wellFormed(result.output)
      checkSize(spec.name, result.output)
    } catch (error) {
      // Parking, ending and being cancelled are not failures of this step.
      if (error instanceof Suspended || error instanceof AllSuspended || error instanceof RunFailure) throw error
      if (deps.signal.aborted) throw deps.signal.reason
      // This process stops: the next one makes the call.
      if (isStoreUnavailable(error)) throw error
      const cost = await deps.open.get(spec.stepId)?.()
      deps.open.delete(spec.stepId)
      const delayMs = await fail(deps, spec, attempt, error, cost)
      await deps.journal.commit()
      if (delayMs > 0) await pauseOf(deps, delayMs)
      attempt++
      intent = undefined
      repeated = false
      continue
    }
    deps.open.delete(spec.stepId)
    return complete(deps, spec, attempt, result, deps.clock.monotonic() - before)
  }
}

/** Started, and then the process died: it is unknown whether the call happened. */
async function resume(
  deps: StepsDeps,
  spec: StepSpec,
  open: { attempt: number; meta: EventMeta; uncertain: number },
  call: (call: StepCall) => Promise<StepResult>,
): Promise<StepOutcome> {
  const { attempt, meta } = open
  switch (spec.onInterrupted) {
    case 'retry': {
      const of = spec.maxAttempts ?? deps.retry.maxAttempts
      if (spec.kind === 'model') {
        const error = 'interrupted; whether it was billed is not known'
        const nextAt = deps.clock.now().toISOString()
        const payload = { attempt, of: Math.max(of, attempt), error, code: UNCERTAIN, delayMs: 0, nextAt }
        // What is sent now may differ from what was sent before the crash: another window, other tools.
        const request = spec.intent?.request
        if (request) deps.history.request = request
        const { stepId, inputHash } = spec
        const isOther = inputHash !== undefined && inputHash !== meta.inputHash
        const now: EventMeta = { ...(isOther && { inputHash }), ...(request && { request }) }
        deps.journal.append(
          { kind: 'step_retrying', stepId, attempt, payload, meta: now },
          { ...spec.beside, retold: true },
        )
        await deps.journal.commit()
      }
      return attempts(deps, spec, { attempt, intent: meta, repeated: true }, call)
    }
    case 'fail':
      return uncertain(deps, spec, attempt)
    case 'verify': {
      if (!spec.verify) return askWhetherDone(deps, spec, open, call)
      const found = await spec.verify({
        key: keyOf(deps, spec.stepId, attempt),
        attempt,
        signal: deps.signal,
        intent: meta,
        repeated: true,
        metered: () => undefined,
      })
      return found.done
        ? complete(deps, spec, attempt, { output: wellFormed(found.output) }, 0)
        : attempts(deps, spec, { attempt, intent: meta }, call)
    }
    case 'ask':
      return askWhetherDone(deps, spec, open, call)
  }
}

async function uncertain(deps: StepsDeps, spec: StepSpec, attempt: number): Promise<never> {
  const error = `${spec.name} was interrupted and may or may not have happened`
  deps.journal.append({
    kind: 'step_failed',
    stepId: spec.stepId,
    attempt,
    payload: { error, code: 'step_uncertain', transient: false },
  })
  await deps.journal.commit()
  throw new RunFailure('step_uncertain', error, { stepId: spec.stepId })
}

async function askWhetherDone(
  deps: StepsDeps,
  spec: StepSpec,
  { attempt }: { attempt: number },
  call: (call: StepCall) => Promise<StepResult>,
): Promise<StepOutcome> {
  const decided = await deps.approvals.ask({
    stepId: spec.stepId,
    attempt,
    reason: 'uncertain_step',
    prompt: `${spec.name} was interrupted. Did it happen? Approve with resolution "retry" to call it again, or "completed" with its output.`,
    ...(spec.action && { action: spec.action }),
  })
  const { to } = spec.action ?? {}
  const agreed: Pick<Decision, 'to' | 'isOther'> = decided.resolution === 'retry' ? decided : {}
  const isElsewhere = agreed.to !== undefined && agreed.to !== to && agreed.to !== deps.redact?.text(to ?? '')
  const isOther = isElsewhere || agreed.isOther === true
  if (!decided.approved || isOther) {
    const error = isOther
      ? `${spec.name} was interrupted and is not called again: it goes elsewhere or has other arguments than when a human was asked`
      : `${spec.name} was interrupted, and what it did was not accepted`
    deps.journal.append({
      kind: 'step_failed',
      stepId: spec.stepId,
      attempt,
      payload: { error, code: 'step_uncertain', transient: false },
    })
    throw new StepFailure('step_uncertain', error)
  }
  if (decided.resolution === 'completed')
    return complete(deps, spec, attempt, { output: wellFormed(decided.output) }, 0)
  // Said again before it is done again, so that a further crash asks again.
  return attempts(deps, spec, { attempt }, call)
}
