import { ApiError } from '../../shared/http/api-error.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { createSlots } from '../../shared/time/slots.ts'
import { type BlobRef, blobRef } from '../../shared/wire/runtime/journal.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { isTerminal, type Run, type Step } from '../../shared/wire/runtime/run.ts'
import type { StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { blobReader, withBlobs } from '../execution/blobs.ts'
import type { ModelReply } from '../execution/harness/agent-run.ts'
import { userMessage } from '../execution/harness/conversation.ts'
import { type Recorded, rebuildRequest } from '../execution/harness/rebuild-request.ts'
import type { JournalEntry } from '../execution/journal/event.ts'
import { type History, outputOf, readHistory } from '../execution/journal/history.ts'
import { readToolList } from '../execution/tool-lists.ts'
import { type Turn, withHints } from '../execution/turn.ts'
import { redactionOf } from '../privacy/redaction.ts'
import type { Records } from '../vault/records.ts'
import { cutText, type Origins, requestPage } from './step-request-page.ts'
import { isLeftOut, journalOutline, outputAt, stepsOf } from './steps.ts'
import type { RunStore } from './store.ts'

export interface StepRequestsDeps {
  db: Db
  records: Records
  sha256: Sha256
  runs: Pick<RunStore, 'get' | 'events' | 'page' | 'progress'>
  getVersion: (versionId: string) => Promise<{ manifest: Manifest } | undefined>
  /** What a turn of a session began with, as it was. */
  turnAsItWas: (
    run: Pick<Run, 'id'> & { input: NonNullable<Run['input']> },
    sessionId: string,
    manifest: Manifest,
  ) => Promise<Pick<Turn, 'opening' | 'hints'> | undefined>
}

export interface RequestsOfSteps {
  /** What a model step sent and got; undefined: there is no such step. */
  of(runId: string, stepId: string, before?: number): Promise<StepRequest | undefined>
}

/** Each holds the journal of a run in memory, without long outputs. */
const REBUILT_AT_ONCE = 2

/** What the model steps of the runs of this store sent and got, rebuilt from their journals (docs/spec/runtime.md §4). */
export function stepRequests(deps: StepRequestsDeps): RequestsOfSteps {
  const { runs } = deps
  const rebuilding = createSlots(REBUILT_AT_ONCE)

  const eventsOf = (runId: string) => journalOutline(runs, runId)

  async function requestOf(runId: string, stepId: string, before?: number): Promise<StepRequest | undefined> {
    const events = await eventsOf(runId)
    const step = stepsOf(events, (await runs.progress(runId))?.recoverySeq ?? 0).find(one => one.stepId === stepId)
    if (!step) return undefined
    if (step.kind !== 'model' && step.kind !== 'confidence') {
      throw new ApiError('validation_failed', `${stepId} asks no model: it is a step of the kind ${step.kind}`)
    }
    const said = facts(step, events)
    const origin = await originOf(runs, eventsOf, { runId, events }, stepId)
    const from = origin && origin.runId !== runId ? { copiedFrom: { runId: origin.runId } } : {}
    const found = origin ? await rebuild(deps, origin, stepId) : 'deleted'
    if (typeof found === 'string') return { ...said, ...from, without: found }
    const { rebuilt, history, answer } = found
    const usage = { tokensIn: step.tokensIn, cacheReadTokens: said.cacheReadTokens ?? 0 }
    const origins = await originsIn(rebuilt.request.messages, history, origin!.events)
    const request = requestPage(rebuilt.request, usage, { exact: rebuilt.exact, before, origins })
    return { ...said, ...from, request, ...(answer && { answer }) }
  }

  return {
    async of(runId, stepId, before) {
      const release = await rebuilding.take()
      return requestOf(runId, stepId, before).finally(release)
    },
  }
}

function withLongOutputs({ steps }: History, read: (seq: number) => Promise<unknown>): void {
  for (const [stepId, state] of steps) {
    if (state.is !== 'completed' || !isLeftOut(state.output)) continue
    steps.set(stepId, { ...state, load: () => read(state.seq) })
  }
}

/** What the journal says of a model step without a word of what was said. */
function facts(step: Step, events: readonly JournalEntry[]): StepRequest {
  const own = events.filter(({ stepId }) => stepId === step.stepId)
  const meta = own.findLast(({ kind }) => kind === 'step_completed')?.meta ?? {}
  const { cacheReadTokens, cacheWriteTokens, unpriced, routerTraceId, responseId } = meta
  const failures = own.flatMap(({ kind, attempt, at, payload, meta }) =>
    kind === 'step_retrying' || kind === 'step_failed'
      ? [
          {
            attempt,
            at,
            error: String(payload.error),
            code: String(payload.code),
            tokensIn: meta.tokensIn ?? 0,
            tokensOut: meta.tokensOut ?? 0,
            costUsd: meta.costUsd ?? 0,
          },
        ]
      : [],
  )
  return {
    step,
    failures,
    ...(cacheReadTokens !== undefined && { cacheReadTokens }),
    ...(cacheWriteTokens !== undefined && { cacheWriteTokens }),
    ...(unpriced && { unpriced }),
    ...(typeof routerTraceId === 'string' && { routerTraceId }),
    ...(typeof responseId === 'string' && { responseId }),
  }
}

interface Journal {
  runId: string
  events: JournalEntry[]
}

/** The journal in which the step was executed: a fork begins with copies. Undefined: it was deleted. */
async function originOf(
  runs: Pick<RunStore, 'get'>,
  eventsOf: (runId: string) => Promise<JournalEntry[]>,
  journal: Journal,
  stepId: string,
): Promise<Journal | undefined> {
  for (let { runId, events } = journal; ; ) {
    const start = events.find(one => one.kind === 'step_started' && one.stepId === stepId)
    if (!start) return undefined
    const from = start.meta.copiedFrom as { runId: string } | undefined
    if (from === undefined) return { runId, events }
    if (!(await runs.get(from.runId))) return undefined
    runId = from.runId
    events = await eventsOf(runId)
  }
}

async function rebuild(deps: StepRequestsDeps, { runId, events }: Journal, stepId: string) {
  const { db, records, sha256 } = deps
  const run = await deps.runs.get(runId)
  const declared = run && (await deps.getVersion(run.agentVersionId))?.manifest
  if (!run || !declared) return 'deleted'
  if (!declared.privacy.storePrompts) return 'not_stored'
  if (declared.entrypoint) return 'program'
  if (!run.input) return isTerminal(run.status) ? 'deleted' : 'unknown'
  const start = events.find(one => one.kind === 'step_started' && one.stepId === stepId)!
  // As it was when the step began, and after its end for what was answered.
  const history = readHistory(events.filter(({ seq }) => seq < start.seq))
  const whole = readHistory(events.filter(one => one.seq < start.seq || one.stepId === stepId))
  withBlobs(whole, blobReader(db, records, runId))
  withLongOutputs(whole, seq => outputAt(deps.runs, runId, seq))
  for (const id of history.steps.keys()) history.steps.set(id, whole.steps.get(id)!)
  // Of the attempt that was made last, which may have come after a restart.
  const own = events.filter(one => one.stepId === stepId)
  const known = own.findLast(({ meta }) => meta.request)?.meta.request ?? history.request ?? {}
  const redact = redactionOf(declared)
  const input = redact ? redact.value(run.input) : run.input
  const turn =
    run.sessionId === undefined
      ? undefined
      : await deps.turnAsItWas({ id: runId, input: run.input }, run.sessionId, declared)
  const tools = known.tools === undefined ? [] : await readToolList(db, records, run.agentVersionId, known.tools)
  const recorded: Recorded = {
    runId,
    history,
    sha256,
    tools: tools ?? [],
    contextTokens: known.contextTokens,
    inputHash: own.findLast(({ meta }) => meta.inputHash !== undefined)?.meta.inputHash,
    opening: turn?.opening ?? [{ role: 'user', text: userMessage(input) }],
    manifest: turn ? { ...declared, systemPrompt: withHints(declared.systemPrompt, turn.hints) } : declared,
  }
  const rebuilt = await rebuildRequest(stepId, recorded)
  if (!rebuilt) return 'unknown'
  return { rebuilt, history, answer: await answerOf(whole, stepId) }
}

/** What a step said, where it has come to an answer. */
async function answerOf({ steps }: History, stepId: string): Promise<StepRequest['answer']> {
  const state = steps.get(stepId)
  if (state?.is !== 'completed') return undefined
  const {
    text = '',
    thinking,
    toolCalls = [],
    stop,
    cappedByBudget,
    sample,
    score,
  } = (await outputOf(state)) as Partial<ModelReply> & {
    sample?: string
    score?: number
  }
  return {
    ...cutText(sample ?? text),
    ...(thinking !== undefined && { thinking: cutText(thinking) }),
    toolCalls: toolCalls.map(call => ({ ...call })),
    ...(stop && { stop }),
    ...(cappedByBudget && { cappedByBudget }),
    ...(score !== undefined && { score }),
  }
}

/** Which steps the messages of a conversation came from: the newest first, as older ones may have been shortened away. */
async function originsIn(
  messages: Parameters<typeof requestPage>[0]['messages'],
  { steps }: History,
  events: readonly JournalEntry[],
): Promise<Origins> {
  const blobs = new Map(
    events.flatMap(({ kind, stepId, payload }): [string, BlobRef['$blob']][] => {
      const ref = kind === 'step_completed' ? blobRef.safeParse(payload.output) : undefined
      return ref?.success ? [[stepId, ref.data.$blob]] : []
    }),
  )
  const byPlace = new Map([...steps.keys()].map(stepId => [stepId.slice(stepId.indexOf('-') + 1), stepId]))
  const said = new Map<number, string>()
  const results = new Map<string, { stepId: string; blob?: { sha256: string; bytes: number } }>()
  let turn = Math.max(0, ...[...steps.keys()].map(stepId => Number(/^model-(\d+)$/.exec(stepId)?.[1] ?? 0)))
  for (let at = messages.length - 1; at >= 0 && turn > 0; at--) {
    const message = messages[at]!
    if (message.role !== 'assistant') continue
    while (turn > 0 && !(await isOf(steps.get(`model-${turn}`), message))) turn--
    if (turn === 0) break
    said.set(at, `model-${turn}`)
    const after = messages[at + 1]
    for (const place of after?.role === 'tool' ? after.results.keys() : []) {
      const stepId = byPlace.get(`${turn}-${place + 1}`)
      if (stepId === undefined) continue
      const blob = blobs.get(stepId)
      results.set(`${at + 1}.${place}`, { stepId, ...(blob && { blob: { sha256: blob.sha256, bytes: blob.bytes } }) })
    }
    turn--
  }
  return { said, results }
}

async function isOf(
  state: ReturnType<History['steps']['get']>,
  message: { text: string; toolCalls: readonly { id: string }[] },
): Promise<boolean> {
  if (state?.is !== 'completed') return false
  const { text, toolCalls = [] } = (await outputOf(state)) as Partial<ModelReply>
  return (
    text === message.text &&
    toolCalls.length === message.toolCalls.length &&
    toolCalls.every(({ id }, at) => id === message.toolCalls[at]?.id)
  )
}
