import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import { listIn, objectIn, type RowOf, readRow, textIn } from '../../shared/sql/db.ts'
import type { Delivery, Webhook, WebhookBody, WebhookEvent } from '../../shared/wire/runtime/webhook.ts'
import type { webhookDeliveries, webhooks } from '../schema/tables.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import type { VaultAad } from '../vault/vault.ts'

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

const time = (ms: number) => new Date(ms).toISOString()

export function toWebhookRow(row: RowOf<typeof webhooks>): WebhookRow {
  return readRow(`webhook ${row.id}`, row, () => ({
    id: row.id,
    tenantId: row.tenant_id,
    url: textIn(row.url),
    events: listIn<WebhookEvent>(row.events),
    enabled: row.enabled !== 0,
    sealedSecret: row.sealed_secret,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  }))
}

export function toWebhook({ id, url, events, enabled, createdMs, updatedMs }: WebhookRow): Webhook {
  return { id, url, events, enabled, createdAt: time(createdMs), updatedAt: time(updatedMs) }
}

export function toDeliveryRow(row: RowOf<typeof webhookDeliveries>): DeliveryRow {
  return readRow(`delivery ${row.event_id}`, row, () => {
    objectIn(row.data)
    return {
      webhookId: row.webhook_id,
      eventId: row.event_id,
      type: row.type,
      atMs: row.at_ms,
      data: row.data,
      outcome: row.outcome,
      attempt: row.attempt,
      status: row.status ?? undefined,
      error: row.error === null ? undefined : textIn(row.error),
      dueMs: row.due_ms ?? undefined,
      createdMs: row.created_ms,
    }
  })
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
  aadOf: ({ id, tenant_id }) => secretAad({ id: String(id), tenantId: String(tenant_id) }),
}

export function secretAad({ tenantId, id }: Pick<WebhookRow, 'tenantId' | 'id'>): VaultAad {
  return { tenantId, recordId: `webhook/${id}`, field: 'secret' }
}
