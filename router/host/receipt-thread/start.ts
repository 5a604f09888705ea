import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { networkVars } from '../../../shared/env/read-env.ts'
import { keepCompiled } from '../../../shared/host/keep-compiled.ts'
import { relayedMetrics } from '../../metrics/metrics-relay.ts'
import type { ReceiptStorage } from '../../receipts.ts'
import { receiptThreadClient } from './client.ts'
import type { ReceiptLocation } from './messages.ts'

const ROLE = 'waybill-receipt-thread'
/** Left to itself, the engine lets the objects of calls that are over take 128 MiB (measured). */
const YOUNG_MB = 24

export interface ReceiptThread {
  elsewhere: NonNullable<ReceiptStorage['elsewhere']>
  /** Resolves when the thread keeps receipts, or when it is clear that it never will. */
  ready: Promise<void>
}

/**
 * A thread that makes receipts, for `Keeping.elsewhere`. Reading, sealing and committing one costs as much processor time as relaying its
 * call (measured: 50 µs), and a commit holds its thread up; there both happen beside the calls, over a connection of its own. It starts
 * when the store is ready for it, loads its modules while the router begins to listen, and does not keep the process alive.
 */
export function receiptThread(
  place: ReceiptLocation,
  started: (worker: Worker) => void = () => undefined,
): ReceiptThread {
  const ready = Promise.withResolvers<void>()
  return {
    ready: ready.promise,
    async elsewhere(deps, here) {
      const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_MB }
      const worker = new Worker(new URL(import.meta.url), {
        workerData: ROLE,
        execArgv: [],
        env: networkVars(process.env),
        resourceLimits,
      })
      started(worker)
      const { metrics, apply } = relayedMetrics(deps.metrics)
      return receiptThreadClient({ ...deps, worker, place, metrics, apply, ready, here: () => here(metrics) })
    },
  }
}

// The other side: this file is also the program of the thread, so that source and build need no second path.
if (!isMainThread && workerData === ROLE && parentPort !== null) {
  keepCompiled()
  const { serveReceipts } = await import('./worker.ts')
  serveReceipts(parentPort)
}
