import type { InStatement, InValue } from '@libsql/client/web'
import type { WebhookEvent } from '../../shared/wire/runtime/webhook.ts'

/** Ids and counters, never run data. Money is integer nano-USD here, under `costNano`. */
export type EventData = Readonly<Record<string, string | number | boolean | null>>

export interface QueuedEvent {
  tenantId: string
  type: WebhookEvent
  atMs: number
  data: EventData
  /** Something that must be so in the transaction. */
  when?: { sql: string; args: InValue[] }
}

/** In SQL: whether the webhook `w` wants a type. None listed: all of them. What cannot be read must not fail the commit that it stands in. */
export const subscribesSql = (type: string) =>
  `w.enabled = 1 and (w.events = '[]' or exists (select 1 from json_each(iif(json_valid(w.events), w.events, '[null]')) where value = ${type}))`

/** For the transaction that makes an event so: one delivery for each webhook of the tenant that wants it. */
export function enqueueEvent(newId: () => string, { tenantId, type, atMs, data, when }: QueuedEvent): InStatement {
  return {
    sql: `insert into webhook_deliveries (webhook_id, event_id, type, at_ms, data, outcome, due_ms, created_ms)
select w.id, ?, ?, ?, ?, 'pending', ?, ? from webhooks as w
where w.tenant_id = ? and ${subscribesSql('?')}${when ? ` and ${when.sql}` : ''}`,
    args: [newId(), type, atMs, JSON.stringify(data), atMs, atMs, tenantId, type, ...(when?.args ?? [])],
  }
}

/** A window that got no run. The revision is the one of the scan that refused it: another instance may have been first. */
export function enqueueRefusedWindow(
  newId: () => string,
  refused: {
    tenantId: string
    scheduleId: string
    agentName: string
    reason: string
    windowMs: number
    revision: number
  },
  nowMs: number,
): InStatement {
  const { tenantId, scheduleId, agentName, reason, windowMs, revision } = refused
  return enqueueEvent(newId, {
    tenantId,
    type: 'schedule.refused',
    atMs: nowMs,
    data: { scheduleId, agentName, reason, windowAt: new Date(windowMs).toISOString() },
    when: { sql: 'exists (select 1 from schedules where id = ? and revision = ?)', args: [scheduleId, revision] },
  })
}
