import { ApiError } from '../../shared/http/api-error.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { sameRecord } from '../../shared/http/validate.ts'
import type { Db } from '../../shared/sql/db.ts'
import { webhookEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/operations.ts'
import type { Principal } from '../http/http-env.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import type { Sent } from './send.ts'
import { newWebhookSecret } from './signature.ts'
import type { WebhookStore } from './store.ts'
import { toDelivery, toWebhook, type WebhookRow } from './webhook.ts'

export interface WebhooksDeps {
  db: Pick<Db, 'write'>
  store: Pick<WebhookStore, 'insert' | 'count' | 'get' | 'list' | 'update' | 'remove' | 'deliveries' | 'redeliver'>
  sealSecret: (webhook: Pick<WebhookRow, 'id' | 'tenantId'>, secret: string) => Promise<string>
  /** One message without a delivery of its own. */
  sendTest: (webhook: WebhookRow) => Promise<Sent>
  egress: Pick<EgressClient, 'problem'>
  now: () => Date
  monotonic: () => number
  newId: () => string
}

const MASK = '***'
/** Each event is a row for each webhook that wants it, in the commit of the event. */
const MOST_WEBHOOKS = 100

/** The webhooks of a tenant (docs/spec/runtime.md §15). A secret is shown once. */
export function webhookOperations(deps: WebhooksDeps): Operation[] {
  const { db, store, sealSecret, sendTest, egress, now, monotonic, newId } = deps

  async function find(principal: Principal, { id }: { id: string }): Promise<WebhookRow> {
    return own(principal, await store.get(id), 'webhook', id)
  }

  async function checkUrl(text: string): Promise<void> {
    const url = new URL(text)
    const problem =
      url.username !== '' || url.password !== ''
        ? 'expected an address without a name and password in it'
        : await egress.problem(url)
    if (problem === undefined) return
    throw new ApiError('validation_failed', `url: ${problem}`, { details: [{ path: 'url', message: problem }] })
  }

  return [
    keyedOperation(
      endpoints.create,
      async ({ principal: { tenantId }, body: { url, events, enabled }, idempotency }) => {
        if ((await store.count(tenantId)) >= MOST_WEBHOOKS) {
          throw new ApiError('validation_failed', `a tenant has at most ${MOST_WEBHOOKS} webhooks`)
        }
        await checkUrl(url)
        const [id, secret, createdMs] = [newId(), newWebhookSecret(), now().getTime()]
        const sealedSecret = await sealSecret({ id, tenantId }, secret)
        const row: WebhookRow = { id, tenantId, url, events, enabled, sealedSecret, createdMs, updatedMs: createdMs }
        await db.write([store.insert(row), ...idempotency.bind(id)])
        return { ...toWebhook(row), secret }
      },
      {
        oneTime: ['secret'],
        again: async ({ principal }, id) => ({ ...toWebhook(await find(principal, { id })), secret: MASK }),
      },
    ),
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await store.list(call.principal.tenantId, page)
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toWebhook)
    }),
    operation(endpoints.update, async ({ principal, params, body }) => {
      const known = await find(principal, params)
      await sameRecord(body, () => toWebhook(known))
      if (body.url !== undefined) await checkUrl(body.url)
      const changed = await store.update(known.id, body, now().getTime())
      if (changed === undefined) throw notFound('webhook', known.id)
      return toWebhook(changed)
    }),
    operation(endpoints.remove, async ({ principal, params }) => {
      const { id } = await find(principal, params)
      if (!(await store.remove(id))) throw notFound('webhook', id)
    }),
    operation(endpoints.test, async ({ principal, params }) => {
      const webhook = await find(principal, params)
      const before = monotonic()
      const { delivered, status, error } = await sendTest(webhook)
      return {
        success: delivered,
        latencyMs: Math.round(monotonic() - before),
        ...(status !== undefined && { status }),
        ...(error !== undefined && { error }),
      }
    }),
    operation(endpoints.deliveries, async call => {
      const page = pageOf(call)
      const { id } = await find(call.principal, call.params)
      const rows = await store.deliveries(id, call.query, page)
      return page.cut(rows, ({ createdMs, eventId }) => ({ at: createdMs, id: eventId })).map(toDelivery)
    }),
    operation(endpoints.redeliver, async ({ principal, params }) => {
      const { id } = await find(principal, params)
      const row = await store.redeliver(id, params.deliveryId, now().getTime())
      if (row === undefined) throw notFound('delivery', params.deliveryId)
      return toDelivery(row)
    }),
  ]
}
