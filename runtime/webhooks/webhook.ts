import type { Row } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import type { Delivery, Webhook, WebhookBody, WebhookEvent } from '../../shared/wire/runtime/webhook.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import type { Place } from '../vault/vault.ts'

export interface WebhookRow {
  id: string
  tenantId: string
  url: string
  events: WebhookEvent[]
  enabled: boolean
  sealedSecret: string
  createdMs: number
  updatedMs: number
}

/** An event on its way to one webhook. */
export interface DeliveryRow {
  webhookId: string
  eventId: string
  type: string
  atMs: number
  /** JSON text. */
  data: string
  outcome: Delivery['outcome']
  attempt: number
  status: number | undefined
  error: string | undefined
  dueMs: number | undefined
  createdMs: number
}

const numberOf = (value: unknown) => (value === null || value === undefined ? undefined : Number(value))
const time = (ms: number) => new Date(ms).toISOString()

export function toWebhookRow(row: Row): WebhookRow {
  return {
    id: String(row.id),
    tenantId: String(row.tenant_id),
    url: readJson(String(row.url)) as string,
    events: readJson(String(row.events)) as WebhookEvent[],
    enabled: Number(row.enabled) === 1,
    sealedSecret: String(row.sealed_secret),
    createdMs: Number(row.created_ms),
    updatedMs: Number(row.updated_ms),
  }
}

export function toWebhook({ id, url, events, enabled, createdMs, updatedMs }: WebhookRow): Webhook {
  return { id, url, events, enabled, createdAt: time(createdMs), updatedAt: time(updatedMs) }
}

export function toDeliveryRow(row: Row): DeliveryRow {
  return {
    webhookId: String(row.webhook_id),
    eventId: String(row.event_id),
    type: String(row.type),
    atMs: Number(row.at_ms),
    data: String(row.data),
    outcome: String(row.outcome) as Delivery['outcome'],
    attempt: Number(row.attempt),
    status: numberOf(row.status),
    error: row.error === null ? undefined : (readJson(String(row.error)) as string),
    dueMs: numberOf(row.due_ms),
    createdMs: Number(row.created_ms),
  }
}

export function toDelivery(row: DeliveryRow): Delivery {
  const { eventId, type, attempt, outcome, status, error, atMs, dueMs } = row
  return {
    id: eventId,
    type,
    attempt,
    outcome,
    at: time(atMs),
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error }),
    ...(dueMs !== undefined && { nextAt: time(dueMs) }),
  }
}

/** The text that is sent: the same at every attempt, since it is made of what does not change. */
export function bodyText(
  tenantId: string,
  { eventId, type, atMs, data }: Pick<DeliveryRow, 'eventId' | 'type' | 'atMs' | 'data'>,
): string {
  const { costNano, ...rest } = readJson(data) as WebhookBody['data']
  const body: WebhookBody = {
    id: eventId,
    type: type as WebhookBody['type'],
    at: time(atMs),
    tenantId,
    data: {
      ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)),
      ...(typeof costNano === 'number' && { costUsd: toUsd(costNano) }),
    },
  }
  return JSON.stringify(body)
}

export const WEBHOOK_SEALED: SealedColumn = {
  table: 'webhooks',
  column: 'sealed_secret',
  key: ['id', 'tenant_id'],
  placeOf: ({ id, tenant_id }) => placeOfSecret({ id: String(id), tenantId: String(tenant_id) }),
}

export function placeOfSecret({ tenantId, id }: Pick<WebhookRow, 'tenantId' | 'id'>): Place {
  return { tenantId, recordId: `webhook/${id}`, field: 'secret' }
}
