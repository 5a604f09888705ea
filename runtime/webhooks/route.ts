import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody, sameRecord } from '../../shared/http/validate.ts'
import { emptyBody, pageQuery } from '../../shared/wire/runtime/conventions.ts'
import {
  deliveryListQuery,
  type WebhookCreated,
  type WebhookTested,
  webhookCreate,
  webhookUpdate,
} from '../../shared/wire/runtime/webhook.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import type { WebhooksDeps } from './deps.ts'
import { newWebhookSecret } from './signature.ts'
import { toDelivery, toWebhook, type WebhookRow } from './webhook.ts'

const MASK = '***'

/** The webhooks of a tenant (docs/spec/runtime.md §15). A secret is shown once. */
export function webhooksRoute(deps: WebhooksDeps) {
  const { db, store, sealSecret, sendTest, egress, idempotent, now, monotonic, newId, maxBodyBytes } = deps

  async function find(principal: Principal, id: string): Promise<WebhookRow> {
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

  return new Hono<RuntimeHttpEnv>()
    .post(
      '/v1/webhooks',
      jsonBody(webhookCreate, maxBodyBytes),
      idempotent({
        oneTime: ['secret'],
        again: async (c, id) => c.json({ ...toWebhook(await find(c.get('principal'), id)), secret: MASK }, 201),
      }),
      async c => {
        const { url, events, enabled } = c.req.valid('json')
        await checkUrl(url)
        const { tenantId } = c.get('principal')
        const [id, secret, createdMs] = [newId(), newWebhookSecret(), now().getTime()]
        const sealedSecret = await sealSecret({ id, tenantId }, secret)
        const row: WebhookRow = { id, tenantId, url, events, enabled, sealedSecret, createdMs, updatedMs: createdMs }
        const bind = c.get('idempotency')?.statement(id)
        await db.write([store.insert(row), ...(bind ? [bind] : [])])
        return c.json({ ...toWebhook(row), secret } satisfies WebhookCreated, 201)
      },
    )
    .get('/v1/webhooks', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const rows = await store.list(c.get('principal').tenantId, page)
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toWebhook))
    })
    .put('/v1/webhooks/:id', jsonBody(webhookUpdate, maxBodyBytes), async c => {
      const known = await find(c.get('principal'), c.req.param('id'))
      const { id } = known
      const given = c.req.valid('json')
      await sameRecord(given, () => toWebhook(known))
      if (given.url !== undefined) await checkUrl(given.url)
      const changed = await store.update(id, given, now().getTime())
      if (changed === undefined) throw notFound('webhook', id)
      return c.json(toWebhook(changed))
    })
    .delete('/v1/webhooks/:id', async c => {
      const { id } = await find(c.get('principal'), c.req.param('id'))
      if (!(await store.remove(id))) throw notFound('webhook', id)
      return c.body(null, 204)
    })
    .post('/v1/webhooks/:id/test', jsonBody(emptyBody, maxBodyBytes), async c => {
      const webhook = await find(c.get('principal'), c.req.param('id'))
      const before = monotonic()
      const { delivered, status, error } = await sendTest(webhook)
      const latencyMs = Math.round(monotonic() - before)
      const tested: WebhookTested = {
        ...{ success: delivered, latencyMs },
        ...(status !== undefined && { status }),
        ...(error !== undefined && { error }),
      }
      return c.json(tested)
    })
    .get('/v1/webhooks/:id/deliveries', async c => {
      const query = readQuery(c, deliveryListQuery)
      const page = pageOf(c, query)
      const { id } = await find(c.get('principal'), c.req.param('id'))
      const rows = await store.deliveries(id, query, page)
      return c.json(page.cut(rows, ({ createdMs, eventId }) => ({ at: createdMs, id: eventId })).map(toDelivery))
    })
    .post('/v1/webhooks/:id/deliveries/:deliveryId/redeliver', jsonBody(emptyBody, maxBodyBytes), async c => {
      const { id } = await find(c.get('principal'), c.req.param('id'))
      const deliveryId = c.req.param('deliveryId')
      const row = await store.redeliver(id, deliveryId, now().getTime())
      if (row === undefined) throw notFound('delivery', deliveryId)
      return c.json(toDelivery(row))
    })
}
