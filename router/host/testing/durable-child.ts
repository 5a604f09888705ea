import { openDb } from '../../../shared/host/open-libsql.ts'
import { writerIsGone, writerName } from '../../../shared/host/writer-name.ts'
import { silentLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { routerSteps } from '../../schema/steps.ts'
import { publishKey } from '../../traces/keys.ts'
import { sampleTrace } from '../../traces/testing/records.ts'
import { traceWriter } from '../../traces/writer.ts'
import { readSigningKey } from '../signing-key.ts'
import { openSpillFile } from '../spill-file.ts'

/** Writes durable records in bursts that overrun its queue, and prints each id once it was told that the record is safe. */
const dbPath = process.argv[2] ?? ''
const db = await openDb(dbPath, { synchronous: 'full' })
await migrate(db, 'router', routerSteps)
const signer = await readSigningKey({ dbPath })
if (signer === undefined) throw new Error('no signing key')
await publishKey(db, signer, new Date())
const writer = traceWriter({
  db,
  clock: systemClock,
  log: silentLog(),
  metrics: createMetrics(),
  mode: 'durable',
  signer,
  spill: await openSpillFile(dbPath),
  holder: writerName(),
  isGone: writerIsGone,
  limits: { queue: 12, batch: 8, checkpoint_records: 40 },
})
writer.start()
for (;;) {
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const record = sampleTrace({ at: Date.now() })
      writer.enqueue(record)
      await writer.recorded(record.trace_id)
      process.stdout.write(`${record.trace_id}\n`)
    }),
  )
}
