import type { InStatement, InValue } from '@libsql/client/web'
import { type Db, type RowOf, readRows, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import type { Delivery } from '../../shared/wire/runtime/webhook.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { webhookDeliveries, webhooks } from '../schema/tables.ts'
import { type DeliveryRow, toDeliveryRow, toWebhookRow, type WebhookRow } from './webhook.ts'

type Stored = RowOf<typeof webhooks>
type StoredDelivery = RowOf<typeof webhookDeliveries>

export interface Taking {
  nowMs: number
  /** Until when others leave alone what is taken. */
  leaseMs: number
  most: number
  mostOfWebhook: number
  /** How many are under way, by id. */
  underWay: { ofWebhook: ReadonlyMap<string, number>; ofTenant: ReadonlyMap<string, number> }
}

export interface Settling {
  outcome: Delivery['outcome']
  status: number | undefined
  error: string | undefined
  dueMs: number | undefined
}

const GIVE_UP = `update webhook_deliveries set outcome = 'failed', error = ?, due_ms = null where webhook_id = ? and event_id = ?`

// Each webhook's due rows come by their index. Those with the fewest under way go first, so that a backlog holds up nothing that is new, and
// each tenant leaves room as `leavesRoom` says (decision 122): what is taken is the beginning of that order.
const TAKE = `update webhook_deliveries set due_ms = ?2, attempt = attempt + 1
where rowid in (
  select id from (
    select id, of_tenant, row_number() over (order by of_tenant, of_webhook, due_ms) as taken
    from (
      select *, tenants_own + row_number() over (partition by tenant_id order by of_webhook, due_ms) as of_tenant
      from (
        select d.rowid as id, d.due_ms, w.tenant_id, coalesce(t.value, 0) as tenants_own,
          coalesce(o.value, 0) + row_number() over (partition by w.id order by d.due_ms) as of_webhook
        from webhooks as w
        left join json_each(?5) as o on o.key = w.id left join json_each(?6) as t on t.key = w.tenant_id
        join webhook_deliveries as d on d.rowid in (
          select rowid from webhook_deliveries where webhook_id = w.id and due_ms <= ?1 order by due_ms limit ?4)
        where coalesce(o.value, 0) < ?4 and (t.value is null or t.value < 7 * (?3 - 1)))
      where of_webhook <= ?4))
  where taken <= ?3 and (of_tenant = 1 or of_tenant <= 7 * (?3 - taken)))
returning *`

export type WebhookStore = ReturnType<typeof webhookStore>

export function webhookStore(db: Db) {
  return {
    ...deliveryStore(db),

    insert(row: WebhookRow): InStatement {
      const { id, tenantId, url, events, enabled, sealedSecret, createdMs, updatedMs } = row
      return {
        sql: `insert into webhooks (id, tenant_id, url, events, enabled, sealed_secret, created_ms, updated_ms)
values (?, ?, ?, ?, ?, ?, ?, ?)`,
        args: [
          ...[id, tenantId, JSON.stringify(url), JSON.stringify(events), enabled ? 1 : 0, sealedSecret],
          ...[createdMs, updatedMs],
        ],
      }
    },

    async get(id: string): Promise<WebhookRow | undefined> {
      const found = await db.execute({ sql: 'select * from webhooks where id = ?', args: [storableText(id)] })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toWebhookRow(rows[0])
    },

    async getMany(ids: readonly string[]): Promise<Map<string, WebhookRow>> {
      const found = await db.execute({
        sql: 'select * from webhooks where id in (select value from json_each(?))',
        args: [JSON.stringify(ids)],
      })
      const all = readRows(rowsOf<Stored>(found), toWebhookRow, () => undefined)
      return new Map(all.map(row => [row.id, row]))
    },

    async list(tenantId: string, page: PageOf): Promise<WebhookRow[]> {
      const { where, order, args } = pageSql(page)
      const found = await db.execute({
        sql: `select * from webhooks where tenant_id = ? ${where} ${order}`,
        args: [tenantId, ...args],
      })
      return readPage(page, rowsOf<Stored>(found), toWebhookRow)
    },

    async count(tenantId: string): Promise<number> {
      const found = await db.execute({
        sql: 'select count(*) as n from webhooks where tenant_id = ?',
        args: [tenantId],
      })
      return rowsOf<{ n: number }>(found)[0]!.n
    },

    async update(
      id: string,
      { url, events, enabled }: { [K in 'url' | 'events' | 'enabled']?: WebhookRow[K] | undefined },
      nowMs: number,
    ): Promise<WebhookRow | undefined> {
      const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value))
      const found = await db.execute({
        sql: `update webhooks set url = coalesce(?, url), events = coalesce(?, events), enabled = coalesce(?, enabled),
updated_ms = ? where id = ? returning *`,
        args: [json(url), json(events), enabled === undefined ? null : enabled ? 1 : 0, nowMs, id],
      })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toWebhookRow(rows[0])
    },

    async remove(id: string): Promise<boolean> {
      return (await db.execute({ sql: 'delete from webhooks where id = ?', args: [id] })).rowsAffected === 1
    },
  }
}

/** What is sent to webhooks, and how it went. */
function deliveryStore(db: Db) {
  return {
    /** Takes deliveries that are due, and counts the attempt. One UPDATE, so that two processes never take the same one. */
    async take({ nowMs, leaseMs, most, mostOfWebhook, underWay }: Taking): Promise<DeliveryRow[]> {
      const counts = [underWay.ofWebhook, underWay.ofTenant].map(one => JSON.stringify(Object.fromEntries(one)))
      const args = [nowMs, nowMs + leaseMs, most, mostOfWebhook, ...counts]
      const damaged: InValue[][] = []
      const rows = rowsOf<StoredDelivery>(await db.execute({ sql: TAKE, args }))
      const taken = readRows(rows, toDeliveryRow, ({ message }, { webhook_id, event_id }) => {
        damaged.push([JSON.stringify(message), webhook_id, event_id])
      })
      await db.write(damaged.map(args => ({ sql: GIVE_UP, args })))
      return taken
    },

    /** Writes how an attempt went, unless a later one is under way: it may have the same number, where the delivery began anew. */
    async settle(
      { webhookId, eventId, attempt, dueMs: leaseMs }: DeliveryRow,
      { outcome, status, error, dueMs }: Settling,
    ): Promise<void> {
      await db.execute({
        sql: `update webhook_deliveries set outcome = ?, status = ?, error = ?, due_ms = ?
where webhook_id = ? and event_id = ? and attempt = ? and due_ms is ?`,
        args: [
          ...[outcome, status ?? null, error === undefined ? null : JSON.stringify(error), dueMs ?? null],
          ...[webhookId, eventId, attempt, leaseMs ?? null],
        ],
      })
    },

    /** After the clock was set back: those that are due later than in so long were timed by what it said before. */
    async hasten(nowMs: number, laterMs: number): Promise<void> {
      const [where, args] = ['due_ms > ?1 + ?2', [nowMs, laterMs]]
      const found = await db.execute({ sql: `select 1 from webhook_deliveries where ${where} limit 1`, args })
      if (found.rows.length > 0)
        await db.execute({ sql: `update webhook_deliveries set due_ms = ?1 where ${where}`, args })
    },

    async nextDue(): Promise<number | undefined> {
      const found = await db.execute(
        'select due_ms from webhook_deliveries where due_ms is not null order by due_ms limit 1',
      )
      return rowsOf<{ due_ms: number }>(found)[0]?.due_ms
    },

    async deliveries(
      webhookId: string,
      { outcome }: { outcome?: Delivery['outcome'] | undefined },
      page: PageOf,
    ): Promise<DeliveryRow[]> {
      const { limit, after } = page
      const args: InValue[] = [webhookId]
      let sql = 'select * from webhook_deliveries where webhook_id = ?'
      if (outcome !== undefined) {
        sql += ' and outcome = ?'
        args.push(outcome)
      }
      if (after !== undefined) {
        sql += ' and (created_ms, event_id) < (?, ?)'
        args.push(after.at, after.id)
      }
      sql += ' order by created_ms desc, event_id desc limit ?'
      const rows = rowsOf<StoredDelivery>(await db.execute({ sql, args: [...args, limit + 1] }))
      return readPage(page, rows, toDeliveryRow, row => ({ at: row.created_ms, id: row.event_id }))
    },

    /** Sends one again from the start, whatever became of it; undefined when there is none. */
    async redeliver(webhookId: string, eventId: string, nowMs: number): Promise<DeliveryRow | undefined> {
      const found = await db.execute({
        sql: `update webhook_deliveries set outcome = 'pending', attempt = 0, status = null, error = null, due_ms = ?
where webhook_id = ? and event_id = ? returning *`,
        args: [nowMs, webhookId, storableText(eventId)],
      })
      const rows = rowsOf<StoredDelivery>(found)
      return rows[0] && toDeliveryRow(rows[0])
    },

    /** Forgets settled deliveries from before a moment, at most so many at once. */
    async prune(beforeMs: number, most: number): Promise<void> {
      await db.execute({
        sql: `delete from webhook_deliveries where rowid in (
          select rowid from webhook_deliveries where due_ms is null and created_ms < ? order by created_ms limit ?)`,
        args: [beforeMs, most],
      })
    },
  }
}
