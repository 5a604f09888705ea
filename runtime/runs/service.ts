import type { InStatement } from '@libsql/client/web'
import type { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { sha256 as portableSha256, type Sha256 } from '../../shared/sign/sha256.ts'
import { createSlots, type Slots } from '../../shared/time/slots.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { isTerminal, type Run, type RunFork, type runCreate } from '../../shared/wire/runtime/run.ts'
import type { Engine } from '../execution/engine.ts'
import { canonicalBody } from '../http/idempotent.ts'
import { notFound } from '../http/own-tenant.ts'
import { redactedInput, redactionOf } from '../privacy/redaction.ts'
import { newRun, refuseUnfitInput } from './created-run.ts'
import { copiedEvents, retriedStep, stepsToCopy, unfinishedBefore } from './fork.ts'
import { placeholderInput } from './sealed-input.ts'
import { isLeftOut, journalOutline } from './steps.ts'
import type { NewRun, RunStore } from './store.ts'

export interface AgentVersion {
  agentId: string
  agentName: string
  versionId: string
  manifest: Manifest
  /** Of the agent, where they were read with it. */
  agentLabels?: Readonly<Record<string, string>> | undefined
}

/** What a run would be of; the input as canonical text. */
export interface RunCandidate extends AgentVersion {
  tenantId: string
  input: string
}

/** Makes a run under its agent's budget: `create` gets what belongs to the same transaction. */
export type Admit = <T>(
  candidate: RunCandidate,
  runId: string,
  create: (admission: { statements: InStatement[]; exceeded: boolean; unlimited?: boolean }) => Promise<T>,
) => Promise<T>

export interface RunServiceDeps {
  runs: RunStore
  engine: Pick<Engine, 'wake' | 'end'>
  currentByName: (tenantId: string, name: string) => Promise<AgentVersion | undefined>
  findVersion: (tenantId: string, versionId: string) => Promise<AgentVersion | undefined>
  admit: Admit
  dayOf: (ms: number) => string
  newId: () => string
  now: () => Date
  sha256?: Sha256
  /** Of the journal that a fork begins with. Default: no limit. */
  copiedBytesAtMost?: number | undefined
}

/** A run as it is asked for, before it has an id and a day. */
type Creation = Omit<
  NewRun,
  'id' | 'createdMs' | 'day' | 'isolation' | 'agentId' | 'versionId' | 'agentName' | 'agentLabels'
>

/** Without a step all that is on record is kept. */
type Fork = Omit<RunFork, 'fromStepId'> & { fromStepId: string | undefined }

/** What the caller's transaction adds to a creation. */
export type CreationStatements = (runId: string) => InStatement[]

export type RunService = ReturnType<typeof runService>

/** Starting, forking and ending runs: what the routes, schedules and sessions have in common. */
export function runService(deps: RunServiceDeps) {
  const { runs, engine, newId, now } = deps
  const longForks = createSlots(1)
  const forked = (source: Run, fork: Fork, also: CreationStatements) => forkRun(deps, longForks, source, fork, also)

  return {
    /** Makes a run of that version. */
    begin: (given: Creation, version: AgentVersion, also: CreationStatements, id?: string) =>
      createRun(deps, given, version, also, id),

    /** Cancels a run and its children; false when it had ended before. */
    end: (id: string, reason: string | undefined) => cancelTree(deps, id, reason),

    async start(
      tenantId: string,
      { agentName, input, labels = {}, versionId }: z.output<typeof runCreate>,
      also: CreationStatements,
      by: Pick<NewRun, 'trigger' | 'scheduleId' | 'sealedInput'> = { trigger: { kind: 'api' } },
    ): Promise<Run> {
      const version = await versionFor(deps, tenantId, agentName, versionId)
      const { inputSchema } = version.manifest
      if (by.trigger.kind === 'api' && inputSchema) refuseUnfitInput(inputSchema, input)
      const run = { tenantId, input: canonicalBody(input), labels: canonicalBody(labels), ...by }
      return createRun(deps, run, version, also)
    },

    fork: (source: Run, fork: RunFork, also: CreationStatements) => forked(source, fork, also),

    async retry(source: Run, also: CreationStatements): Promise<Run> {
      if (source.status !== 'failed' && source.status !== 'cancelled') {
        throw new ApiError(
          'run_not_terminal',
          `run ${source.id} is ${source.status}: only a failed or cancelled one is retried`,
        )
      }
      const journal = await journalOutline(runs, source.id)
      const { onlyStep = false, stepId } = source.forkedFrom ?? {}
      const isBegun = journal.some(event => isStart(event) && event.stepId === stepId)
      const trial = isBegun ? stepId : undefined
      const fromStepId = onlyStep ? trial : retriedStep(journal, source.error?.stepId)
      return forked(source, { fromStepId, onlyStep }, also)
    },

    /** Ends the run and its children; the answer shows it cancelled. */
    async cancel(run: Run, reason: string | undefined): Promise<Run> {
      if (!(await cancelTree(deps, run.id, reason))) throw terminal(run)
      const after = await runs.get(run.id)
      if (!after) throw new Error(`run ${run.id} is gone right after it was cancelled`)
      return after
    },

    async remove({ id }: Run): Promise<void> {
      if (await runs.remove(id)) return
      const run = await runs.get(id)
      if (!run) throw notFound('run', id)
      throw new ApiError('run_not_terminal', `run ${id} is ${run.status}: cancel it before you delete it`)
    },

    async signal(run: Run, name: string, value: unknown): Promise<void> {
      if (isTerminal(run.status)) throw terminal(run)
      if (name === 'resume' && run.parked?.reason === 'poisoned') {
        await runs.resume(run.id, now().getTime())
        engine.wake()
        return
      }
      const version = await deps.findVersion(run.tenantId, run.agentVersionId)
      const redact = version && redactionOf(version.manifest)
      const signal = {
        id: newId(),
        name: name.toWellFormed(),
        value: canonicalBody((redact ? redact.value(value) : value) ?? null),
        atMs: now().getTime(),
      }
      if (!(await runs.signal(run.id, signal))) {
        throw new ApiError('in_use', `run ${run.id} takes no more signals: it has ended, or 100 are waiting`)
      }
      engine.wake()
    },
  }
}

async function createRun(
  deps: RunServiceDeps,
  given: Creation,
  version: AgentVersion,
  also: CreationStatements,
  id: string = deps.newId(),
): Promise<Run> {
  const { agentId, agentName, agentLabels, versionId, manifest } = version
  const { sealedInput } = given
  const run = sealedInput ? given : { ...given, input: redactedInput(manifest, given.input) }
  const input = sealedInput ? placeholderInput(sealedInput) : run.input
  const made = await deps.admit(
    { ...version, tenantId: run.tenantId, input },
    id,
    ({ statements, exceeded, unlimited }) => {
      const createdMs = deps.now().getTime()
      return deps.runs.create({
        ...run,
        id,
        agentId,
        agentName,
        agentLabels,
        versionId,
        isolation: manifest.isolation,
        budgetExceeded: exceeded,
        unlimited,
        createdMs,
        day: deps.dayOf(createdMs),
        also: [...statements, ...(run.also ?? []), ...also(id)],
      })
    },
  )
  return newRun(made)
}

async function versionFor(
  deps: RunServiceDeps,
  tenantId: string,
  agentName: string,
  versionId: string | undefined,
): Promise<AgentVersion> {
  const current = await deps.currentByName(tenantId, agentName)
  if (!current) throw notFound('agent', agentName)
  if (versionId === undefined) return current
  const version = await deps.findVersion(tenantId, versionId)
  if (version?.agentId !== current.agentId) throw notFound('agent version', versionId)
  return version
}

/** A new run that begins with copies of the steps before `fromStepId`, or of all where there is none. */
async function forkRun(
  deps: RunServiceDeps,
  longForks: Slots,
  source: Run,
  { fromStepId, input, versionId = source.agentVersionId, onlyStep }: Fork,
  also: CreationStatements,
): Promise<Run> {
  const own = await versionOf(deps, source)
  refuseDropped(source, own)
  // No caller could limit what a deleted agent spends, and another agent may have its name.
  const agent = await deps.currentByName(source.tenantId, source.agentName)
  if (agent?.agentId !== own.agentId) throw notFound('agent', source.agentName)
  const isOther = versionId !== source.agentVersionId
  const version = isOther ? await deps.findVersion(source.tenantId, versionId) : own
  if (version?.agentId !== own.agentId) throw notFound('agent version', versionId)
  const { inputSchema } = version.manifest
  if (input !== undefined && inputSchema) refuseUnfitInput(inputSchema, input)
  const id = deps.newId()
  const journal = await journalOutline(deps.runs, source.id)
  const kept = stepsToCopy(journal, fromStepId)
  if (!kept) throw notFound('step', String(fromStepId))
  const at = fromStepId ?? (onlyStep ? source.forkedFrom?.stepId : undefined)
  if (onlyStep && at !== undefined) refuseTrial(source, version, at, unfinishedBefore(journal, at))
  const blobs = {
    sql: `insert into blobs (run_id, sha256, media_type, content, sealed)
      select ?, sha256, media_type, content, sealed from blobs where run_id = ? on conflict do nothing`,
    args: [id, source.id],
  }
  const copy = {
    tenantId: source.tenantId,
    labels: JSON.stringify(source.labels),
    also: [blobs],
    input: canonicalBody(input ?? inputOf(source)),
    trigger: { kind: 'fork' as const, ref: source.id },
    ...(at !== undefined && { forkedFrom: { runId: source.id, stepId: at } }),
    ...(onlyStep && at !== undefined && { onlyStep: at }),
  }
  // Long ones are copied one at a time: each is in memory several times on its way into the store.
  const isLong = kept.some(({ payload }) => isLeftOut(payload.output))
  const release = isLong ? await longForks.take(undefined, source.tenantId) : undefined
  try {
    const { runs, sha256 = portableSha256, copiedBytesAtMost } = deps
    const options = { at: deps.now(), keepsTools: !isOther }
    const events = await copiedEvents({ runs, sha256, copiedBytesAtMost }, kept, id, options)
    return await createRun(deps, { ...copy, events }, version, also, id)
  } finally {
    release?.()
  }
}

async function versionOf(deps: RunServiceDeps, { tenantId, agentVersionId }: Run): Promise<AgentVersion> {
  const version = await deps.findVersion(tenantId, agentVersionId)
  if (!version) throw notFound('agent version', agentVersionId)
  return version
}

async function cancelTree(deps: RunServiceDeps, id: string, reason: string | undefined): Promise<boolean> {
  const ended = await deps.engine.end(id, { code: 'cancelled', ...(reason !== undefined && { reason }) })
  for (const child of await deps.runs.children(id)) await cancelTree(deps, child, reason)
  return ended
}

const isStart = ({ kind }: { kind: string }) => kind === 'step_started'

/** A trial asks a model what the step asked it, and does nothing else. */
function refuseTrial(
  { trigger, sessionId }: Run,
  { manifest }: AgentVersion,
  stepId: string,
  unfinished: string | undefined,
): void {
  const why = !/^model-\d+$/.test(stepId)
    ? `${stepId} is no turn of a model`
    : manifest.entrypoint
      ? 'the program of a code agent asks its model itself'
      : sessionId !== undefined || trigger.kind === 'session'
        ? 'a turn of a session is forked without the turns before it'
        : unfinished === undefined
          ? undefined
          : `the step ${unfinished} before it did not complete, and would be done again`
  if (why === undefined) return
  throw new ApiError('validation_failed', `onlyStep: ${why}`, { details: [{ path: 'onlyStep', message: why }] })
}

/** What an agent that keeps no prompts was given and said is gone with the end of its run. */
function refuseDropped(source: Run, { manifest }: AgentVersion): void {
  if (manifest.privacy.storePrompts || !isTerminal(source.status)) return
  const message = `what run ${source.id} was given is gone (privacy.storePrompts is false): start a new run with POST /v1/runs`
  throw new ApiError('run_terminal', message)
}

/** What a run was given, for one that begins like it: never an empty input in the place of one that cannot be read. */
function inputOf({ id, input, dataAvailable }: Run): NonNullable<Run['input']> {
  if (dataAvailable === false) {
    const message = `what run ${id} was given cannot be read here: start a new run with POST /v1/runs`
    throw new ApiError('run_terminal', message)
  }
  return input ?? {}
}

function terminal(run: Run): ApiError<'run_terminal'> {
  return new ApiError('run_terminal', `run ${run.id} has ended: ${run.status}`)
}
