import { z } from 'zod'
import { query } from '../aliases.ts'
import { count, expected, text } from '../bounds.ts'
import { acceptsRecord } from '../read-only.ts'
import { named } from '../schema-names.ts'
import { id, page, pageAliases, timestamp } from './conventions.ts'

export const webhookEvents = [
  'run.succeeded',
  'run.failed',
  'run.cancelled',
  'run.waiting',
  'approval.expired',
  'budget.threshold',
  'budget.exceeded',
  'schedule.refused',
  'node.lost',
  'anomaly.detected',
] as const
export const webhookEvent = z.enum(webhookEvents)
export type WebhookEvent = z.infer<typeof webhookEvent>

const url = z.url({ protocol: /^https?$/, error: expected('an http or https URL') })
/** None listed: all of them. */
const events = z.array(webhookEvent)

export const webhook = named(
  'Webhook',
  z.object({
    id,
    url: z.string(),
    events,
    enabled: z.boolean(),
    createdAt: timestamp,
    updatedAt: timestamp,
  }),
)
export type Webhook = z.infer<typeof webhook>

export const webhookCreate = named(
  'WebhookCreate',
  z.strictObject({ url, events: events.default([]), enabled: z.boolean().default(true) }),
)
export type WebhookCreate = z.input<typeof webhookCreate>

const updateFields = named(
  'WebhookUpdate',
  z.strictObject({ url: url.optional(), events: events.optional(), enabled: z.boolean().optional() }),
)
export const webhookUpdate = acceptsRecord(updateFields, updateFields.shape, webhook)
export type WebhookUpdate = z.infer<typeof webhookUpdate>

/** `whsec_<base64>`, shown once. */
export const webhookCreated = named('WebhookCreated', webhook.extend({ secret: z.string() }))
export type WebhookCreated = z.infer<typeof webhookCreated>

const deliveryOutcome = z.enum(['delivered', 'retrying', 'failed', 'pending'])

export const delivery = named(
  'WebhookDelivery',
  z.object({
    id,
    type: z.string(),
    attempt: count,
    /** `failed`: given up, until it is sent again by hand. */
    outcome: deliveryOutcome,
    status: z.int().optional(),
    error: z.string().optional(),
    at: timestamp,
    nextAt: timestamp.optional(),
  }),
)
export type Delivery = z.infer<typeof delivery>

export const deliveryListQuery = query({ ...page, outcome: deliveryOutcome.optional() }, pageAliases)

const pathText = text(1, 512)
export const deliveryParams = z.object({ id: pathText, deliveryId: pathText })

export const webhookTested = named(
  'WebhookTested',
  z.object({ success: z.boolean(), status: z.int().optional(), latencyMs: z.number(), error: z.string().optional() }),
)
export type WebhookTested = z.infer<typeof webhookTested>

/** What we send: ids and counters only, never run data. */
export const webhookBody = named(
  'WebhookBody',
  z.object({
    id,
    type: webhookEvent.or(z.literal('webhook.test')),
    at: timestamp,
    tenantId: z.string(),
    data: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  }),
)
export type WebhookBody = z.infer<typeof webhookBody>
