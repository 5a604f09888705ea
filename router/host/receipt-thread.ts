import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { relayedMetrics } from '../metrics/metrics-relay.ts'
import type { Keeping } from '../receipts.ts'
import { receiptFront } from './receipt-front.ts'
import type { KeepingPlace } from './receipt-messages.ts'

const ROLE = 'waybill-receipt-thread'

export interface ReceiptThread {
  readonly worker: Worker
  /** For `Keeping.elsewhere`: receipts are made, sealed and written in the thread, from a connection of its own. */
  keepAt(place: KeepingPlace): NonNullable<Keeping['elsewhere']>
}

/**
 * Starts the thread that makes receipts. Reading, sealing and committing one costs as much processor time as relaying its call (measured:
 * 70 µs), and a commit holds its thread up; here both happen beside the calls. It loads its modules while the router starts, and does
 * not keep the process alive.
 */
export function receiptThread(): ReceiptThread {
  const worker = new Worker(new URL(import.meta.url), { workerData: ROLE, execArgv: [], env: {} })
  worker.unref()
  // Before it is used, an error says nothing more than the exit that follows it.
  worker.on('error', () => undefined)
  return {
    worker,
    keepAt: place => async (deps, here) => {
      const { metrics, apply } = relayedMetrics(deps.metrics)
      return receiptFront({ ...deps, worker, place, metrics, apply, here: () => here(metrics) })
    },
  }
}

// The other side: this file is also the program of the thread, so that source and build need no second path.
if (!isMainThread && workerData === ROLE && parentPort !== null) {
  const { serveReceipts } = await import('./receipt-worker.ts')
  serveReceipts(parentPort)
}
