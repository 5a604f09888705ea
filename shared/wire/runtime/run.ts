import { z } from 'zod'
import { type Alias, fromText, query, withAliases } from '../aliases.ts'
import { count, freeForm, int, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import {
  agentName,
  agentNameAlias,
  filter,
  IDEMPOTENCY_KEY,
  id,
  labelFilter,
  labels,
  listAliases,
  moment,
  page,
  timestamp,
  usd,
} from './conventions.ts'
import { backend, isolationStored } from './isolation.ts'

export const runStatuses = ['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled'] as const
export const runStatus = z.enum(runStatuses)
export type RunStatus = z.infer<typeof runStatus>

/** No later write changes a run in one of these. */
export const terminalStatuses = ['succeeded', 'failed', 'cancelled'] as const satisfies readonly RunStatus[]
export const isTerminal = (status: RunStatus): boolean => (terminalStatuses as readonly string[]).includes(status)

/** docs/spec/runtime.md §4, the closed list. */
export const runErrorCodes = [
  'model_unconfigured',
  'model_error',
  'tool_failed',
  'connector_failed',
  'mcp_failed',
  'sandbox_failed',
  'subagent_failed',
  'entrypoint_failed',
  'isolation_unavailable',
  'node_unavailable',
  'node_lost',
  'budget_exceeded',
  'approval_rejected',
  'approval_expired',
  'low_confidence',
  'step_uncertain',
  'output_invalid',
  'output_truncated',
  'model_refused',
  'limit_exceeded',
  'timeout',
  'anomaly',
  'agent_deleted',
  'secret_missing',
  'secret_refused',
  'nondeterministic_replay',
  'recovery_failed',
  'internal',
] as const
export const runErrorCode = z.enum(runErrorCodes)
export type RunErrorCode = z.infer<typeof runErrorCode>

export const runError = z.object({ code: runErrorCode, message: z.string(), stepId: z.string().optional() })

export const triggerKinds = ['api', 'schedule', 'session', 'subagent', 'fork'] as const
export const triggerKind = z.enum(triggerKinds)

export const run = named(
  'Run',
  z.object({
    id,
    tenantId: z.string(),
    agentName,
    agentId: id,
    agentVersionId: id,
    /** The number of the version; in lists with `fields=title`. */
    agentVersion: count.optional(),
    /** The beginning of what it was told, in lists with `fields=title`; absent where that is not stored, or its node is away. */
    title: z.string().optional(),
    /** Runs that it started itself, counted up to 1000; in lists with `subRuns=folded`. */
    subRuns: count.optional(),
    status: runStatus,
    /** Absent where the node that holds it is away, and with `fields=summary`. */
    input: freeForm.optional(),
    output: freeForm.optional(),
    tokensIn: count,
    tokensOut: count,
    costUsd: usd,
    /** `costUsd` of the run and of all runs below it: what `maxCostUsdPerRun` holds. */
    treeCostUsd: usd.optional(),
    /** The most that its calls may have cost which a crash cut off, beside `tokensIn`, `tokensOut` and `costUsd`; absent: none were. */
    uncertainTokens: count.optional(),
    uncertainCostUsd: usd.optional(),
    /** Of `tokensIn`: read from a provider's cache, and written to it; absent: none. */
    cacheReadTokens: count.optional(),
    cacheWriteTokens: count.optional(),
    /** What `costUsd` went on, as far as calls were priced by class; absent: none was. */
    costByClass: z.object({ inputUsd: usd, cacheReadUsd: usd, cacheWriteUsd: usd, outputUsd: usd }).optional(),
    /** Calls of models that have no price: `costUsd` holds nothing of them; absent: none. */
    unpricedCalls: count.optional(),
    createdAt: timestamp,
    updatedAt: timestamp,
    startedAt: timestamp.optional(),
    finishedAt: timestamp.optional(),
    error: runError.optional(),
    labels,
    trigger: z.object({ kind: triggerKind, ref: z.string().optional() }),
    parentRunId: id.optional(),
    sessionId: id.optional(),
    scheduleId: id.optional(),
    /** `onlyStep`: it ends with the answer of that model step. */
    forkedFrom: z.object({ runId: id, stepId: z.string(), onlyStep: z.boolean().optional() }).optional(),
    nodeId: z.string().optional(),
    isolation: z.object({
      declared: isolationStored,
      used: backend.or(z.literal('shared')).optional(),
      /** `tcg` marks software emulation, which counts only where the operator said so. */
      accel: z.string().optional(),
    }),
    model: z.string().optional(),
    budgetExceeded: z.boolean(),
    /**
     * `poisoned`: it was set aside, for instance because its process ended whenever it was taken up. It waits for the signal `resume`.
     * `rate_limit`: its next model call waits for the limit of its provider, about until then.
     */
    parked: z
      .object({
        reason: z.enum(['timer', 'signal', 'subagent', 'rate_limit', 'poisoned']),
        until: timestamp.optional(),
      })
      .optional(),
    cancelReason: z.string().optional(),
    /** False in lists while the node that holds input and output is away. */
    dataAvailable: z.boolean().optional(),
  }),
)
export type Run = z.infer<typeof run>

export const idempotencyKey = text(1, 255).regex(IDEMPOTENCY_KEY, {
  error: 'expected 1 to 255 printable ASCII characters',
})

const createFields = named(
  'RunCreate',
  z.strictObject({
    agentName,
    input: freeForm.default({}),
    labels: labels.optional(),
    versionId: id.optional(),
    /** For clients that cannot set headers; the header `Idempotency-Key` wins. */
    idempotencyKey: idempotencyKey.optional(),
  }),
)
export const runAliases: readonly Alias[] = [agentNameAlias, { from: 'idempotency_key', to: 'idempotencyKey' }]
export const runCreate = withAliases(createFields, runAliases)
export type RunCreate = z.input<typeof createFields>

export const runListQuery = query(
  {
    ...page,
    agentName: filter,
    status: runStatus.optional(),
    sessionId: filter,
    scheduleId: filter,
    parentRunId: filter,
    trigger: triggerKind.optional(),
    errorCode: runErrorCode.optional(),
    /** Runs with that label. */
    label: labelFilter.optional(),
    /** Words that all have to be there: of the agent, the model, the error, the labels, the id, and of texts that are stored in clear. */
    q: text(1, 200).optional(),
    /** Runs that were created, in a sorted list ended, from one moment until before another. */
    from: moment.optional(),
    to: moment.optional(),
    /** Leaves out runs that another run started, and counts them beside it. */
    subRuns: z.enum(['folded']).optional(),
    /** The greatest first, of ended runs. */
    sort: z.enum(['costUsd', 'durationMs']).optional(),
    /** Answers in the header `Total-Count` how many there are. */
    count: z.enum(['true']).optional(),
    /** Leaves out what was given and said, which a node may hold; `title` has the beginning of what was given. */
    fields: z.enum(['summary', 'title']).optional(),
  },
  listAliases,
)
export type RunListQuery = z.output<typeof runListQuery>

export const runGetQuery = query({ fields: z.enum(['summary']).optional() })

export const runCancel = named('RunCancel', z.strictObject({ reason: text(0, 2000).optional() }).prefault({}))
export const runFork = named(
  'RunFork',
  z.strictObject({
    fromStepId: text(1, 256),
    input: freeForm.optional(),
    /** Another version of the same agent, for the steps that are not copied. */
    versionId: id.optional(),
    /** A trial of that model step alone: the run ends with its answer, and none of the calls that it asks for is made. */
    onlyStep: z.boolean().default(false),
  }),
)
export type RunFork = z.infer<typeof runFork>
export const signalSend = named('SignalSend', z.strictObject({ value: z.unknown().optional() }).prefault({}))
export const signalParams = z.object({ id: text(1, 512), name: text(1, 128) })

/** A malformed digest is answered 404, like an unknown one. */
export const blobParams = z.object({ id: text(1, 512), hash: text(1, 128) })

/** Where a run's stream starts and whether it follows the live run. */
export const runEventsQuery = query({
  /** 0 is the start, as 1 is. */
  from_seq: fromText(int(0)).optional(),
  live: z
    .enum(['true', 'false'])
    .default('true')
    .transform(value => value === 'true')
    .pipe(z.boolean()),
})

export const stepKinds = [
  'model',
  'tool',
  'exec',
  'connector',
  'mcp',
  'approval',
  'confidence',
  'timer',
  'signal',
  'subagent',
  'code',
] as const
export const stepKind = z.enum(stepKinds)
export type StepKind = z.infer<typeof stepKind>

export const step = named(
  'Step',
  z.object({
    stepId: z.string(),
    parentStepId: z.string().optional(),
    kind: stepKind,
    name: z.string(),
    status: z.enum(['running', 'completed', 'failed', 'waiting', 'uncertain']),
    attempt: z.int().min(1),
    startedAt: timestamp,
    finishedAt: timestamp.optional(),
    durationMs: z.number().min(0).optional(),
    tokensIn: count,
    tokensOut: count,
    costUsd: usd,
    provider: z.string().optional(),
    model: z.string().optional(),
    /** A recovery reused the recorded result. */
    replayed: z.boolean(),
    copied: z.boolean(),
    error: z.string().optional(),
  }),
)
export type Step = z.infer<typeof step>
