import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { RouterEnv } from '../env.ts'
import type { RouterOptions } from '../options.ts'
import { createRouter, type Router } from '../router.ts'
import type { ReceiptLocation } from './receipt-thread/messages.ts'
import { receiptThread } from './receipt-thread/start.ts'
import { openReceiptStorage } from './receipt-thread/storage.ts'

export interface OpenRouter {
  router: Router
  db: Db
  /** Resolves when its receipts are kept where they will be. */
  settled: Promise<void> | undefined
  /** Lets go of the store, once the router is closed. */
  release(): Promise<void>
}

/** A router on one store, with the thread that keeps its receipts. */
export async function openRouter(
  env: RouterEnv,
  place: ReceiptLocation,
  options: Omit<RouterOptions, 'db' | 'receiptStorage'>,
): Promise<OpenRouter> {
  const db = await openDb(place.address, {
    // All calls would wait for it: the thread of the receipts does it at a thirtieth of this.
    checkpointPages: 32_000,
    synchronous: env.ROUTER_RECEIPTS === 'durable' ? 'full' : 'normal',
    ...(env.ROUTER_DB_TOKEN && { token: env.ROUTER_DB_TOKEN }),
  })
  // A store in memory is in this thread only.
  const thread = db.kind === 'memory' ? undefined : receiptThread(place)
  const { receiptStorage, close: closeReceiptStorage } = await openReceiptStorage(place)
  const router = createRouter({
    ...options,
    db,
    receiptStorage: { ...receiptStorage, ...(thread && { elsewhere: thread.elsewhere }) },
  })
  async function release(): Promise<void> {
    await closeReceiptStorage()
    db.close()
  }
  try {
    await router.ready()
  } catch (error) {
    await release().catch(() => undefined)
    throw error
  }
  return { router, db, settled: thread?.ready, release }
}
