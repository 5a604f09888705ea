import { z } from 'zod'
import { fromText, query } from '../aliases.ts'
import { count, freeForm, int, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { hex64, timestamp, usd } from './conventions.ts'
import { step } from './run.ts'

export const stepParams = z.object({ id: text(1, 512), stepId: text(1, 256) })

/** Messages before that place: pages go from the newest to the oldest. */
export const stepRequestQuery = query({ before: fromText(int(1)).optional() })

const cut = {
  /** Characters of the text that this answer leaves out at its end. */
  omitted: count.optional(),
}

const weight = {
  /** Of the tokens that the provider counted, by the share of the characters. */
  estimatedTokens: count.optional(),
  /** Whether the provider read it from its cache, by the same estimate. */
  cached: z.enum(['whole', 'part']).optional(),
}

const toolCall = named('RequestToolCall', z.object({ id: z.string(), name: z.string(), arguments: freeForm }))

const toolResult = named(
  'RequestToolResult',
  z.object({
    callId: z.string(),
    name: z.string(),
    content: z.string(),
    ...cut,
    failed: z.boolean(),
    /** The step that gave it; absent where no call was made. */
    stepId: z.string().optional(),
    /** The whole result, where it stands beside the journal. */
    blob: z.object({ sha256: hex64, bytes: count }).optional(),
  }),
)

export const requestMessage = named(
  'RequestMessage',
  z.discriminatedUnion('role', [
    z.object({ role: z.literal('user'), text: z.string(), ...cut, ...weight }),
    z.object({
      role: z.literal('assistant'),
      text: z.string(),
      ...cut,
      toolCalls: z.array(toolCall),
      /** The step that said it; absent for earlier turns of a session. */
      stepId: z.string().optional(),
      ...weight,
    }),
    z.object({ role: z.literal('tool'), results: z.array(toolResult), ...weight }),
  ]),
)
export type RequestMessage = z.infer<typeof requestMessage>

/** Why there is no conversation in the answer. */
export const withoutConversation = z.enum(['not_stored', 'program', 'deleted', 'unknown'])

export const stepRequest = named(
  'StepRequest',
  z.object({
    step,
    /** Tokens that a provider's cache read and took. */
    cacheReadTokens: count.optional(),
    cacheWriteTokens: count.optional(),
    /** The model has no price. */
    unpriced: z.boolean().optional(),
    routerTraceId: z.string().optional(),
    responseId: z.string().optional(),
    /** Attempts that came to nothing, and what they cost. */
    failures: z.array(
      z.object({
        attempt: z.int().min(1),
        at: timestamp,
        error: z.string(),
        code: z.string(),
        tokensIn: count,
        tokensOut: count,
        costUsd: usd,
      }),
    ),
    /** The run and step that made the call which a fork copied. */
    copiedFrom: z.object({ runId: z.string() }).optional(),
    /** Absent: the conversation can be read. */
    without: withoutConversation.optional(),
    request: z
      .object({
        /** Its digest is the one that the journal recorded before the call: this is what was sent. */
        exact: z.boolean(),
        system: z.object({ text: z.string(), ...cut, ...weight }),
        tools: z.array(z.object({ name: z.string(), description: z.string(), parameters: freeForm })),
        toolsOmitted: count.optional(),
        toolTokens: weight.estimatedTokens,
        toolsCached: weight.cached,
        messageCount: count,
        /** The place of the first message of this page; 0: there are none before. */
        firstMessage: count,
        messages: z.array(requestMessage),
        maxOutputTokens: count,
        temperature: z.number().optional(),
        outputSchema: freeForm.optional(),
      })
      .optional(),
    answer: z
      .object({
        text: z.string(),
        ...cut,
        /** What the model showed of its reasoning. */
        thinking: z.object({ text: z.string(), ...cut }).optional(),
        toolCalls: z.array(toolCall),
        stop: z.enum(['end', 'tools', 'length', 'refusal', 'pause']).optional(),
        cappedByBudget: z.boolean().optional(),
        /** Of a confidence step. */
        score: z.number().optional(),
      })
      .optional(),
  }),
)
export type StepRequest = z.infer<typeof stepRequest>
