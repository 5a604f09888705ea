import { writerName } from '../../shared/host/writer-name.ts'
import { collectorPlace } from '../../shared/telemetry/collector.ts'
import type { RouterEnv } from '../env.ts'
import type { ReceiptLocation } from './receipt-thread/messages.ts'

/** Where and how receipts are kept, as the environment says. */
export function receiptLocation(env: RouterEnv): ReceiptLocation {
  return {
    address: env.ROUTER_DB,
    token: env.ROUTER_DB_TOKEN,
    durable: env.ROUTER_RECEIPTS === 'durable',
    signingKey: env.ROUTER_SIGNING_KEY,
    signingKeyFile: env.ROUTER_SIGNING_KEY_FILE,
    anchorFile: env.ROUTER_ANCHOR_FILE,
    holder: writerName(),
    collector: collectorPlace(env, 'waybill-router'),
  }
}
