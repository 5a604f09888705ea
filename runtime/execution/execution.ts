import { boundedSum } from '../../shared/money/money.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { DamagedRowError } from '../../shared/sql/db.ts'
import { isStoreUnavailable } from '../../shared/sql/db-fault.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { type RunErrorCode, runErrorCodes } from '../../shared/wire/runtime/run.ts'
import { type Redaction, redactionOf } from '../privacy/redaction.ts'
import { runApprovals } from './approvals.ts'
import { blobReader, withBlobs } from './blobs.ts'
import type { OpenCalls } from './call-cost.ts'
import { closeOpenSteps } from './close-steps.ts'
import { codeAgent } from './code/code-agent.ts'
import { recordedCalls } from './code/code-calls.ts'
import type { EndEffect, EndedRun, EngineDeps } from './engine-deps.ts'
import { AGENT_DELETED, AllSuspended, RunFailure, StepFailure, Suspended } from './failure.ts'
import { agentLoop } from './harness/agent-loop.ts'
import type { AgentRun } from './harness/agent-run.ts'
import { userMessage } from './harness/conversation.ts'
import type { JournalEntry } from './journal/event.ts'
import { type History, modelsOf, readHistory, unpricedOf } from './journal/history.ts'
import type { JournalWriter } from './journal/journal-writer.ts'
import { type LastWord, LeaseLostError, type RunJournal, runJournal } from './journal/run-journal.ts'
import { plainMessage, wellFormed } from './journal/well-formed.ts'
import type { Claimed, LeaseStore } from './lease-store.ts'
import { mcpServers, type RunMcp } from './mcp/servers.ts'
import { absentModel, type FoundModel } from './models/model.ts'
import type { RunWatchers } from './run-watchers.ts'
import { needsSandbox, placed } from './sandbox/placement.ts'
import { type SandboxOfRun, sandboxOfRun } from './sandbox/run-sandbox.ts'
import type { Offered } from './sandbox/sandboxes.ts'
import { runSteps, type Steps, type StepsDeps } from './step.ts'
import { suspendUntil } from './suspend.ts'
import { keepToolList } from './tool-lists.ts'
import { allowedTools, toolbox } from './tools/toolbox.ts'
import { waitTool } from './tools/waiting-tools.ts'
import { withHints } from './turn.ts'

export interface ExecutionDeps extends EngineDeps {
  leases: LeaseStore
  writer: JournalWriter
  watchers: RunWatchers
  draining: () => boolean
  /** Aborted by the drain. */
  drained: AbortSignal
}

export interface Execution {
  /** Settles when the run is let go: ended, parked, or lost to another owner (LeaseLostError). */
  done: Promise<void>
  /** Stops the work without an entry in the journal: another process owns the run, or will. */
  abandon(): void
  readonly abandoned: boolean
  readonly epoch: number
  /** On the clock that never jumps. */
  readonly claimedAt: number
  /** What its calls in flight have used: stored by the process that takes the run away to end it. */
  readonly open: OpenCalls
}

/** One claim of a run, from the claim to the moment it is let go. */
export function execution(
  deps: ExecutionDeps,
  run: Claimed,
  { reason, open = new Map() }: { reason?: string | undefined; open?: OpenCalls | undefined } = {},
): Execution {
  const stop = new AbortController()
  return {
    open,
    epoch: run.epoch,
    claimedAt: deps.clock.monotonic(),
    done: hold(deps, run, stop, open, reason),
    abandon: () => stop.abort(new LeaseLostError(`run ${run.id} was abandoned`)),
    get abandoned() {
      return stop.signal.aborted
    },
  }
}

async function hold(
  deps: ExecutionDeps,
  run: Claimed,
  stop: AbortController,
  open: OpenCalls,
  reason?: string,
): Promise<void> {
  const { writer, watchers, clock, sha256, db } = deps
  if (run.damage && run.ending === undefined) return setAsideDamaged(deps, run, run.damage)
  const kept = (id: string, entries: readonly JournalEntry[]) => {
    watchers.kept(id, entries)
    deps.observer?.kept(run, entries)
  }
  const journal = runJournal({ writer, clock, sha256, kept }, { runId: run.id, epoch: run.epoch, head: run.head })
  const history = readHistory(run.events)
  withBlobs(history, blobReader(db, deps.records, run.id))
  // Known before the work begins: a wait between its last step and its end would part their commits.
  const rules = await rulesOf(deps, run)
  const end = (ending: Ending) => finish(deps, run, journal, history, { ...ending, drop: rules.drop })
  const park = (all: Parameters<typeof suspendUntil>[0]) => journal.release(() => suspendUntil(all))
  const goOn = async () => {
    if (run.ending !== undefined) throw ended(run.ending, reason)
    const output = await within(deps, run, stop, () => work(deps, run, journal, history, open, stop.signal))
    const kept = rules.redact ? rules.redact.value(output) : output
    await end({ status: 'succeeded', output: canonicalize(kept) })
  }
  const stopFor = async (error: unknown) => {
    if (error instanceof LeaseLostError || journal.lost) throw error
    if (error instanceof Suspended) return park([error.until])
    if (error instanceof AllSuspended) return park(error.all)
    if (error instanceof Cancelled) {
      await closeOpenSteps(deps, run, { journal, history, open }, { code: 'cancelled', message: error.message })
      const why = reason !== undefined && { reason }
      return end({ status: 'cancelled', output: '{}', ...why })
    }
    const failure = failureOf(deps, run, error)
    const { code, stepId } = failure
    const plain = plainMessage(failure)
    const message = rules.redact?.text(plain) ?? plain
    await closeOpenSteps(deps, run, { journal, history, open }, { code, message })
    await end({
      status: 'failed',
      output: canonicalize(wellFormed(rules.redact ? rules.redact.value(failure.output) : failure.output)),
      error: { code, message, ...(stepId && { stepId }) },
    })
  }
  return goOn()
    .catch(stopFor)
    .catch(async (error: unknown) => {
      // What its steps came to is kept all the same: it was paid for.
      await journal.commit().catch(() => undefined)
      throw error
    })
}

/** Nothing goes on by what this service did not write. An operator ends the run, or brings back what it was and lets it go on. */
async function setAsideDamaged(deps: ExecutionDeps, run: Claimed, error: DamagedRowError): Promise<void> {
  const { leases, clock, log, metrics, extraWhenSetAside = () => [] } = deps
  if (!(await leases.setAsideDamaged(run, clock.now().getTime(), extraWhenSetAside))) return
  metrics.setAside.add(1)
  log.error('a damaged run is set aside: restore a backup and send it the signal "resume", or cancel it', {
    error,
    runId: run.id,
    agentName: run.agentName,
  })
  deps.kept?.(true)
}

class Cancelled extends Error {
  override name = 'Cancelled'
}

function ended(code: string, reason?: string): Error {
  if (code === 'cancelled') return new Cancelled(reason ?? 'cancelled')
  const known = runErrorCodes.find(one => one === code) ?? 'internal'
  return new RunFailure(known, known === 'agent_deleted' ? AGENT_DELETED : `ended: ${code}`)
}

function failureOf({ log }: ExecutionDeps, run: Claimed, error: unknown): RunFailure {
  if (error instanceof RunFailure) return error
  // Also where it is the cause of what a step says.
  if (isStoreUnavailable(error)) throw error
  // Outside a tool call only models are asked.
  if (error instanceof StepFailure) return new RunFailure('model_error', error.message, { cause: error })
  // What reaches a client says nothing of the inside; the log has all of it.
  if (isOfTheStore(error)) throw error
  if (error instanceof DamagedRowError) {
    log.error('a run failed by a damaged row', { error, runId: run.id })
    return new RunFailure('internal', error.message, { cause: error })
  }
  log.error('a run failed for an internal reason', { error, runId: run.id })
  return new RunFailure('internal', 'internal error', { cause: error })
}

/** A commit that failed says nothing about the run: it stays as it is and is claimed again. */
function isOfTheStore(error: unknown): boolean {
  if (isStoreUnavailable(error)) return true
  return error instanceof Error && ('code' in error || error.name.startsWith('Queue')) && !(error instanceof RangeError)
}

/** Runs `work` under the manifest's time limit; time in earlier claims counts. */
async function within<T>(deps: ExecutionDeps, run: Claimed, stop: AbortController, work: () => Promise<T>): Promise<T> {
  const { limits } = await deps.manifestOf(run.versionId)
  const left = limits.timeoutSeconds * 1000 - run.ranMs
  const timedOut = () => stop.abort(new RunFailure('timeout', `the run took longer than ${limits.timeoutSeconds} s`))
  if (left <= 0) timedOut()
  const timer = setTimeout(timedOut, Math.max(0, left))
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}

async function work(
  deps: ExecutionDeps,
  run: Claimed,
  journal: RunJournal,
  history: History,
  open: OpenCalls,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { db, records, clock, sha256, newId } = deps
  const declared = await deps.manifestOf(run.versionId)
  const turn = run.sessionId === undefined ? undefined : await deps.turnOf(run, run.sessionId, declared)
  const redact = redactionOf(declared)
  const input = redact ? redact.value(run.input) : run.input
  const manifest = turn ? { ...declared, systemPrompt: withHints(declared.systemPrompt, turn.hints) } : declared
  const offered = await placed(manifest, deps.sandboxes, {
    commandsElsewhere: deps.mcp.stdioTransportOf !== undefined,
  })
  const model = await modelFor(deps, run, manifest)
  const approvals = runApprovals({
    run,
    policy: manifest.approvals,
    db,
    records,
    journal,
    history,
    clock,
    newId,
    redact,
    expired: deps.approvalExpired,
  })
  const stepsUnder = (signal: AbortSignal) =>
    stepsOf(deps, run, manifest, { journal, history, approvals, redact, open, signal })
  // Only a program abandons its own steps; a signal of signals costs each look at it.
  const inner = manifest.entrypoint ? new AbortController() : undefined
  const steps = stepsUnder(inner ? AbortSignal.any([signal, inner.signal]) : signal)
  const sandbox = offered && sandboxFor(deps, run, manifest, offered)
  let mcp: RunMcp | undefined
  try {
    mcp = await mcpServers(
      { ...deps.mcp, secretOf: deps.secretOf, run, steps, history, sha256, clock, sandbox },
      manifest,
    )
    const tools = toolbox(manifest, {
      run,
      db,
      records,
      clock,
      approvals,
      newId,
      depth: run.depth,
      children: deps.children(run),
      outbound: deps.outbound,
      sandbox,
      mcp: mcp.tools,
      connectors: await deps.connectorsOf(run, manifest.connectors),
    })
    const offeredTools = allowedTools(tools, turn?.tools ?? 'all')
    const agent: AgentRun = {
      runId: run.id,
      manifest,
      model,
      steps,
      journal,
      history,
      approvals,
      sha256,
      redact,
      tools: offeredTools,
      ...(manifest.privacy.storePrompts && offeredTools.size > 0 && { keepTools: keepToolList(records, run) }),
      opening: turn?.opening ?? [{ role: 'user', text: userMessage(input) }],
      ...(turn && { voice: turn.voice }),
      ...(run.onlyStep !== undefined && { onlyStep: run.onlyStep }),
    }
    if (!manifest.entrypoint || !sandbox) return await agentLoop(agent)
    return await codeAgent({
      ...agent,
      sandbox,
      entrypoint: manifest.entrypoint,
      input,
      whole: stepsUnder(signal),
      recorded: recordedCalls(run.events),
      wait: waitTool({ run, db, records, clock, approvals }, { name: 'wait', needsApproval: false }),
      abandon: reason => inner?.abort(reason),
    })
  } finally {
    mcp?.close()
    await sandbox?.close()
  }
}

/** The steps of a run, under the rules of its manifest. */
function stepsOf(
  deps: ExecutionDeps,
  run: Claimed,
  manifest: Manifest,
  own: Pick<StepsDeps, 'journal' | 'history' | 'approvals' | 'redact' | 'open' | 'signal'>,
): Steps {
  return runSteps({
    ...own,
    runId: run.id,
    nodeId: deps.nodeId(),
    retry: manifest.retry,
    clock: deps.clock,
    sha256: deps.sha256,
    blob: blobReader(deps.db, deps.records, run.id),
    transient: !manifest.privacy.storePrompts,
    maxSteps: manifest.limits.maxSteps,
    random: deps.random,
    draining: deps.draining,
    rateLimitWait: {
      signal: own.signal,
      drained: deps.drained,
      async show(ms) {
        const untilMs = ms === undefined ? undefined : Math.round(deps.clock.now().getTime() + ms)
        const also = untilMs === undefined ? undefined : deps.extraWhenWaiting?.(run.id, untilMs)
        await deps.leases.showWait(run.id, run.epoch, untilMs, also ?? [])
        if (also) deps.kept?.(false)
      },
    },
    metrics: deps.metrics,
  })
}

/** The model that a manifest names, within the budget of its agent. */
async function modelFor(deps: ExecutionDeps, run: Claimed, manifest: Manifest): Promise<FoundModel> {
  const { tools, connectors, mcpServers, subAgents } = manifest
  const found = await deps.models.find(run.tenantId, manifest.model, {
    tools: tools.length + connectors.length + mcpServers.length + subAgents.length > 0,
  })
  if (found) return deps.withinBudget(run, inSession(found, run.sessionId ?? run.id))
  const isNamed = manifest.model.includes('/')
  const how = isNamed
    ? `save the key of its provider under Settings or with \`runtime providers set ${manifest.model.split('/', 1)[0]}\`, or use demo/echo, which needs none`
    : `name a model of a provider that you have, as <provider>/<model>, in manifest.model, or among the candidates of ${manifest.model} with PUT /v1/settings/models`
  const unserved = `no configured provider serves the model ${manifest.model}: ${how}`
  // A program may have no need of a model.
  if (!manifest.entrypoint) throw new RunFailure('model_unconfigured', unserved)
  return absentModel(manifest.model, unserved)
}

function inSession(model: FoundModel, session: string): FoundModel {
  return { ...model, ask: (request, call) => model.ask(request, { ...call, session }) }
}

/** The sandbox of a run, where something of its manifest needs one; a session may have one machine for all of its turns. */
function sandboxFor(deps: ExecutionDeps, run: Claimed, manifest: Manifest, offered: Offered): SandboxOfRun | undefined {
  if (!needsSandbox(manifest) && !manifest.mcpServers.some(({ command }) => command)) return undefined
  const { dedicatedMicrovm, idleTimeoutSeconds } = manifest.session
  const session =
    run.sessionId !== undefined && dedicatedMicrovm
      ? { id: run.sessionId, idleMs: idleTimeoutSeconds * 1000 }
      : undefined
  const place = { record: session?.id ?? run.id, field: 'workspace' }
  return sandboxOfRun({
    sandboxes: deps.sandboxes,
    runId: run.id,
    manifest,
    offered,
    session,
    fileKeys: {
      seal: text => deps.records.seal(text, place),
      open: sealed => deps.records.open(sealed, place),
    },
    decided: decision => deps.egressDecided(run, decision),
    secret: ref => deps.secretOf(run, ref.replace(/^secret\//, ''), { tool: 'sandbox', agent: manifest }),
  })
}

/** What its agent says about what may be kept of a run; a run whose version cannot be read ends all the same. */
async function rulesOf(deps: ExecutionDeps, run: Claimed): Promise<{ redact: Redaction | undefined; drop: boolean }> {
  try {
    const manifest = await deps.manifestOf(run.versionId)
    return { redact: redactionOf(manifest), drop: !manifest.privacy.storePrompts }
  } catch {
    return { redact: undefined, drop: false }
  }
}

interface Ending {
  status: 'succeeded' | 'failed' | 'cancelled'
  output: string
  error?: { code: RunErrorCode; message: string; stepId?: string }
  reason?: string
}

/** The end of a run and its receipt are one commit, so that there is no run that ended without one. */
async function finish(
  deps: ExecutionDeps,
  run: Claimed,
  journal: RunJournal,
  history: History,
  ending: Ending & { drop: boolean },
): Promise<void> {
  const { watchers, metrics, clock } = deps
  const { status, drop, ...rest } = ending
  let effect: EndEffect | undefined
  let told: EndedRun | undefined
  await journal.release(async last => {
    const ended = endedRun(run, ending, last)
    told = ended
    // Nothing is signed about a run of which the store holds something else than was written.
    const envelope = run.damage ? undefined : await deps.signReceipt(ended)
    const receipt = envelope === undefined ? undefined : { tenantId: run.tenantId, envelope }
    effect = await deps.endEffect(ended)
    const { hash: head, seq: eventCount } = last.head
    const left = {
      asked: history.questions.size > 0,
      child: run.depth > 0,
      also: [...(effect?.statements ?? []), ...(status === 'succeeded' ? [] : deps.children(run).abandoned(last.atMs))],
      drop,
    }
    return { status, dueMs: null, finished: { ...rest, eventCount, head, receipt, ...left } }
  })
  effect?.kept()
  if (told) deps.observer?.ended(told)
  watchers.ended(run.id, journal.head.seq)
  metrics.runs.add(1, { status })
  metrics.runSeconds.observe(Math.max(0, clock.now().getTime() - run.createdMs) / 1000)
  if (told && (told.isolation !== 'shared' || needsSandbox(await deps.manifestOf(run.versionId)))) {
    await deps.sandboxes.forget(run.id).catch((error: unknown) => {
      deps.log.warn('the workspace of a run could not be removed', { error, runId: run.id })
    })
  }
}

function endedRun(run: Claimed, { status, output, error }: Ending, last: LastWord): EndedRun {
  const { head, atMs, spent, models } = last
  return {
    run,
    status,
    output,
    head,
    finishedMs: atMs,
    ...(error && { error }),
    isolation: last.isolationUsed ?? run.isolationUsed ?? run.isolation,
    models: modelsOf(run.events, models),
    unpricedCalls: unpricedOf(run.events) + last.unpricedCalls,
    spent: {
      tokensIn: run.spent.tokensIn + spent.tokensIn,
      tokensOut: run.spent.tokensOut + spent.tokensOut,
      costNano: boundedSum(run.spent.costNano, spent.costNano),
    },
  }
}
