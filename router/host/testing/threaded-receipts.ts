import type { Worker } from 'node:worker_threads'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import { writerName } from '../../../shared/host/writer-name.ts'
import type { Log } from '../../../shared/log/log.ts'
import type { Metrics } from '../../../shared/metrics/metrics.ts'
import { loadBuiltinPrices } from '../../../shared/prices/builtin.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import type { StoreSettings } from '../../config/routing-config.ts'
import { keepReceipts } from '../../receipts.ts'
import { routerSteps } from '../../schema/steps.ts'
import { receiptThread } from '../receipt-thread/start.ts'
import { openReceiptStorage } from '../receipt-thread/storage.ts'

export interface ThreadedOptions {
  durable: boolean
  log: Log
  metrics: Metrics
  store?: Partial<StoreSettings>
}

/** Receipts as the Node host keeps them, without the host around. */
export async function threadedReceipts(path: string, { durable, log, metrics, store }: ThreadedOptions) {
  const db = await openDb(path, { synchronous: durable ? 'full' : 'normal' })
  await migrate(db, 'router', routerSteps)
  const place = { address: path, durable, holder: writerName() }
  let worker: Worker | undefined
  const thread = receiptThread(place, started => {
    worker = started
  })
  const { receiptStorage, close } = await openReceiptStorage(place)
  const receipts = await keepReceipts({
    db,
    log,
    metrics,
    receiptStorage: { ...receiptStorage, elsewhere: thread.elsewhere },
    clock: systemClock,
    sha256: nativeSha256,
    hashing: { sha256: nativeSha256, salt: new Uint8Array(32) },
    store: {
      queue: 8192,
      batch: 256,
      flushMs: 1,
      checkpointRecords: 256,
      checkpointSeconds: 60,
      retentionDays: 0,
      storeReasons: true,
      ...store,
    },
    settings: () => ({
      pricing: { builtin: true, unpriced: 'null', table: 'bundled', overrides: {} },
      hashes: { config_hash: 'c'.repeat(64), price_table_hash: 'd'.repeat(64) },
    }),
    builtinPrices: loadBuiltinPrices,
  })
  return {
    receipts,
    worker: worker!,
    db,
    path,
    async close() {
      await receipts.close()
      await close()
      db.close()
    },
  }
}
