import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Idempotent } from '../http/idempotent.ts'
import type { Sent } from './send.ts'
import type { WebhookStore } from './store.ts'
import type { WebhookRow } from './webhook.ts'

export interface WebhooksDeps {
  db: Pick<Db, 'write'>
  store: Pick<WebhookStore, 'insert' | 'get' | 'list' | 'update' | 'remove' | 'deliveries' | 'redeliver'>
  sealSecret: (webhook: Pick<WebhookRow, 'id' | 'tenantId'>, secret: string) => Promise<string>
  /** One message without a delivery of its own. */
  sendTest: (webhook: WebhookRow) => Promise<Sent>
  egress: Pick<EgressClient, 'problem'>
  idempotent: Idempotent
  now: () => Date
  monotonic: () => number
  newId: () => string
  maxBodyBytes: number
}
