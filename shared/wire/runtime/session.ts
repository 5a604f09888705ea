import { z } from 'zod'
import { flag, fromText, query, withAliases } from '../aliases.ts'
import { count, freeForm, int, plainText, shape, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { agentName, agentNameAlias, filter, id, labels, listAliases, page, timestamp, usd } from './conventions.ts'
import { backend } from './isolation.ts'

export const sessionStatus = z.enum(['active', 'processing', 'stopped'])
export type SessionStatus = z.infer<typeof sessionStatus>

export const sessionMessage = z.object({
  turnId: id,
  role: z.enum(['user', 'assistant']),
  content: z.string(),
  toolCalls: z.array(z.unknown()).optional(),
  at: timestamp,
})
export type SessionMessage = z.infer<typeof sessionMessage>

export const session = named(
  'Session',
  z.object({
    id,
    tenantId: z.string(),
    agentName,
    agentVersionId: id,
    status: sessionStatus,
    title: z.string().optional(),
    labels,
    tokensIn: count,
    tokensOut: count,
    costUsd: usd,
    /** Calls of models that have no price: `costUsd` holds nothing of them; absent: none. */
    unpricedCalls: count.optional(),
    turnCount: count,
    createdAt: timestamp,
    updatedAt: timestamp,
    stoppedAt: timestamp.optional(),
    vm: z.object({ backend, state: z.enum(['warm', 'cold', 'released']), acquiredMs: z.number().min(0) }).optional(),
    /** Only on the single read; the last 200. */
    messages: z.array(sessionMessage).optional(),
    environment: freeForm.optional(),
    dataAvailable: z.boolean().optional(),
  }),
)
export type Session = z.infer<typeof session>

const createFields = named(
  'SessionCreate',
  z.strictObject({
    agentName,
    title: text(0, 256).optional(),
    labels: labels.optional(),
    /** Kept as metadata, not executed. */
    environment: freeForm.optional(),
  }),
)
export const sessionCreate = withAliases(createFields, [agentNameAlias])
export type SessionCreate = z.input<typeof createFields>

export const sessionListQuery = query({ ...page, agentName: filter, status: sessionStatus.optional() }, listAliases)

export const sessionDeleteQuery = query({
  /** Deletes the runs of its turns as well, and those that they called. */
  runs: flag.optional(),
})

const attachment = z.strictObject({
  name: plainText(1, 255),
  mediaType: shape(/^[\w.+-]+\/[\w.+-]+(\s*;\s*[\w-]+=[^;\s]+)*$/, 'a media type such as image/png'),
  data: shape(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'base64 with padding'),
})
export type Attachment = z.infer<typeof attachment>

export const messageCreate = named(
  'MessageCreate',
  z.strictObject({
    content: text(1, 100_000),
    attachments: z.array(attachment).max(10).optional(),
    /** Kept for the session. */
    systemHint: text(0, 20_000).optional(),
    /** For this turn only. */
    turnHint: text(0, 20_000).optional(),
    noTools: z.boolean().optional(),
    readOnlyTools: z.boolean().optional(),
  }),
)
export type MessageCreate = z.infer<typeof messageCreate>

/** `truncated`: cut off at the limit of its length; `refused`: the model would not answer. The run of such a turn is `failed`. */
export const turnFinish = z.enum(['complete', 'truncated', 'refused'])
export type TurnFinish = z.infer<typeof turnFinish>

export const turnReply = named(
  'TurnReply',
  z.object({
    turnId: id,
    text: z.string(),
    tokensIn: count,
    tokensOut: count,
    costUsd: usd,
    unpricedCalls: count.optional(),
    sessionId: id,
    status: z.enum(['completed', 'waiting', 'processing']),
    /** How the answer ended; absent until it has. */
    finish: turnFinish.optional(),
  }),
)
export type TurnReply = z.infer<typeof turnReply>

export const sessionEventsQuery = query({ replay: fromText(int(0, 20).default(0)) })

/** docs/spec/runtime.md §6: the session stream, by SSE event name. */
export const sessionEvents = {
  message_delta: z.object({ sessionId: id, turnId: id, seq: z.int().min(1), delta: z.string() }),
  message_completed: z.object({
    turnId: id,
    text: z.string(),
    usage: named(
      'MessageUsage',
      z.object({ tokensIn: count, tokensOut: count, costUsd: usd, unpricedCalls: count.optional() }),
    ),
    sessionId: id,
    finish: turnFinish.optional(),
  }),
  message_error: z.object({ sessionId: id, turnId: id, error: z.string(), code: z.string() }),
  session_stopped: z.object({ sessionId: id, at: timestamp, reason: z.enum(['stopped', 'deleted', 'agent_deleted']) }),
} as const
export type SessionEventName = keyof typeof sessionEvents
export type SessionEventData<K extends SessionEventName> = z.infer<(typeof sessionEvents)[K]>

/** One event of the stream with its name. */
export type SessionEvent = { [K in SessionEventName]: { event: K; data: SessionEventData<K> } }[SessionEventName]

export const sessionEventData = named(
  'SessionEvent',
  z.union([
    sessionEvents.message_delta,
    sessionEvents.message_completed,
    sessionEvents.message_error,
    sessionEvents.session_stopped,
  ]),
)
