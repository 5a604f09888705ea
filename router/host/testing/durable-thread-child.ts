import { silentLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { sampleUnhashed } from '../../receipt/testing/unhashed.ts'
import { sampleTrace } from '../../traces/testing/records.ts'
import { threadedReceipts } from './threaded-receipts.ts'

/** Like durable-child, through the receipt thread: prints each id once it was told that the record is safe. */
const { receipts } = await threadedReceipts(process.argv[2] ?? '', {
  durable: true,
  log: silentLog(),
  metrics: createMetrics(),
  store: { queue: 12, batch: 8, checkpointRecords: 40 },
})
for (;;) {
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const record = sampleTrace({ at: Date.now() })
      await receipts.record(() => sampleUnhashed({ trace: record }))
      process.stdout.write(`${record.trace_id}\n`)
    }),
  )
}
