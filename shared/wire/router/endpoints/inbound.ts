import { z } from 'zod'
import { text } from '../../bounds.ts'
import { type Endpoint, endpoint, type Method } from '../../endpoint.ts'
import { chatError, messagesError } from '../error.ts'
import { MAX_FEATURE_LENGTH, modeValues } from '../headers.ts'

/** The provider's own body: read for routing, never validated here, forwarded byte for byte. */
const dialectBody = z.looseObject({ model: z.string() })
const dialectAnswer = z.looseObject({})

const feature = text(0, MAX_FEATURE_LENGTH).optional()

const inHeaders = z.object({
  'x-router-mode': z.enum(modeValues).optional(),
  'x-router-agent': feature,
  'x-router-subagent': feature,
  'x-router-session': feature,
  'x-router-task': feature,
  'x-router-language': feature,
  'x-router-max-cost-usd': z.string().optional(),
})

const outHeaders = {
  'x-router-trace-id': 'Id of the decision; on every answer, errors too.',
  'x-router-mode': 'observe, or the profile used.',
  'x-router-served-rung': 'Enforce only, when known at commit.',
  'x-router-gates': 'Enforce only: `failed: a, b` where the answer that is served did not pass these gates.',
  'x-router-served-model': 'Enforce only, when known at commit.',
  'x-router-cost-usd': 'Enforce only, when known at commit.',
} as const

const routed = {
  method: 'POST',
  tag: 'Inbound',
  auth: 'router-key',
  headers: inHeaders,
  body: dialectBody,
  errors: [400, 401, 402, 403, 404, 408, 413, 422, 424, 500, 502, 503, 504],
} as const

const answered = {
  200: {
    description: "The provider's answer in the caller's dialect, as JSON or as a stream.",
    schema: dialectAnswer,
    contentType: ['application/json', 'text/event-stream'],
    headers: outHeaders,
  },
} as const

/** `auth` may add the router's own key; the provider's key travels in the provider's own header and is passed on. */
export const inboundEndpoints = {
  messages: endpoint({
    id: 'createMessage',
    path: '/v1/messages',
    summary: 'Messages dialect; runs the cascade',
    ...routed,
    responses: answered,
    errorSchema: messagesError,
  }),
  chat: endpoint({
    id: 'createChatCompletion',
    path: '/v1/chat/completions',
    summary: 'Chat-completions dialect; runs the same cascade',
    ...routed,
    responses: answered,
    errorSchema: chatError,
  }),
  countTokens: endpoint({
    id: 'countTokens',
    method: 'POST',
    path: '/v1/messages/count_tokens',
    tag: 'Inbound',
    summary: 'Forwarded; the count is never guessed',
    auth: 'router-key',
    body: dialectBody,
    responses: { 200: { description: "The provider's answer.", schema: dialectAnswer } },
    errors: [401, 403, 408, 413, 502, 503],
    errorSchema: messagesError,
  }),
  responses: endpoint({
    id: 'createResponse',
    method: 'POST',
    path: '/v1/responses',
    tag: 'Inbound',
    summary: 'Responses API; forwarded, with its usage and cost on the receipt',
    auth: 'router-key',
    body: dialectBody,
    responses: {
      200: {
        description: "The provider's answer.",
        schema: dialectAnswer,
        contentType: ['application/json', 'text/event-stream'],
      },
    },
    errors: [401, 403, 408, 413, 426, 502, 503],
    errorSchema: chatError,
  }),
  models: endpoint({
    id: 'listModels',
    method: 'GET',
    path: '/v1/models',
    tag: 'Inbound',
    summary: 'Forwarded to the provider that the headers point at',
    auth: 'router-key',
    responses: { 200: { description: "The provider's answer.", schema: dialectAnswer } },
    errors: [401, 403, 502, 503],
  }),
  model: endpoint({
    id: 'getModel',
    method: 'GET',
    path: '/v1/models/{id}',
    tag: 'Inbound',
    summary: 'Forwarded to the provider that the headers point at',
    auth: 'router-key',
    params: z.object({ id: z.string() }),
    responses: { 200: { description: "The provider's answer.", schema: dialectAnswer } },
    errors: [401, 403, 502, 503],
  }),
}

const forward = (method: Method): Endpoint => ({
  id: `pass${method[0]}${method.slice(1).toLowerCase()}`,
  method,
  path: '/v1/{rest}',
  tag: 'Pass-through',
  summary: 'Every other path of a provider, forwarded byte for byte',
  auth: 'router-key',
  params: z.object({ rest: z.string() }),
  responses: { 200: { description: "The provider's answer.", schema: dialectAnswer } },
  errors: [401, 403, 426, 502, 503],
})

/** docs/spec/router.md §2.1: what the router does not route it passes on, with a receipt of what was called. */
export const passthroughEndpoints: readonly Endpoint[] = (['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map(
  forward,
)
