import { type EgressClient, NO_EGRESS } from '../../shared/http/outbound/egress-client.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { type Sealing, vaultToStore } from '../vault/vault.ts'
import { type WebhookDelivery, webhookDelivery } from './deliver.ts'
import type { WebhooksDeps } from './route.ts'
import { send } from './send.ts'
import { webhookStore } from './store.ts'
import { bodyText, secretAad, type WebhookRow } from './webhook.ts'

export interface WebhooksOptions {
  db: Db
  log: Log
  clock: Clock
  metrics: Metrics
  newId: () => string
  sealing: Sealing
  /** Without a way out, webhooks can be stored and nothing is delivered. */
  egress?: EgressClient | undefined
  random?: () => number
}

export interface Webhooks {
  webhooks: WebhooksDeps
  webhookDelivery: WebhookDelivery
}

/** What keeps a tenant from being deleted. */
export const WEBHOOK_HOLDINGS = [{ what: 'webhooks', rows: 'select 1 from webhooks where tenant_id = ?1' }]

/** What an attempt may come to. */
const OUTCOMES = ['delivered', 'retrying', 'failed'].map(outcome => ({ outcome }))

/** Webhooks, put together: the routes, and what empties the outbox. */
export function assembleWebhooks(options: WebhooksOptions): Webhooks {
  const { db, log, clock, metrics, newId, sealing, random = Math.random } = options
  const { now, monotonic } = clock
  const { fetch, problem } = options.egress ?? NO_EGRESS
  const store = webhookStore(db)
  const redact = log.redact.opened

  async function openSecret(webhook: WebhookRow): Promise<string> {
    const vault = await sealing()
    if (!vault) throw new Error('this service was started without the master key that its secrets are sealed with')
    const secret = await vault.open(webhook.sealedSecret, secretAad(webhook))
    redact(secret)
    return secret
  }

  return {
    webhooks: {
      db,
      store,
      now,
      monotonic,
      newId,
      egress: { problem },
      async sealSecret(webhook, secret) {
        redact(secret)
        const vault = await vaultToStore(sealing, 'the secret of a webhook')
        return vault.seal(secret, secretAad(webhook))
      },
      async sendTest(webhook) {
        const [id, atMs] = [newId(), now().getTime()]
        const event = { eventId: id, type: 'webhook.test', atMs, data: '{}' }
        const message = {
          url: webhook.url,
          id,
          body: bodyText(webhook.tenantId, event),
          secret: await openSecret(webhook),
        }
        return send({ fetch, now, stop: new AbortController().signal }, message)
      },
    },
    webhookDelivery: webhookDelivery({
      store,
      openSecret,
      fetch,
      clock,
      random,
      log,
      deliveries: metrics.counter(
        'waybill_webhook_deliveries_total',
        'Attempts to deliver an event, by outcome.',
        OUTCOMES,
      ),
    }),
  }
}
