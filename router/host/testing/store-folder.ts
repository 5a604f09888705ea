import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import { silentLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { signer } from '../../../shared/sign/ed25519.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { routerSteps } from '../../schema/steps.ts'
import { type TraceWriterOptions, traceWriter } from '../../traces/writer.ts'

/** Trace stores in a temporary folder, closed and removed together. */
export async function storeFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-traces-'))
  const opened: Db[] = []
  return {
    path: (name: string) => join(folder, name),
    async open(name = 'router.db'): Promise<Db> {
      const db = await openDb(join(folder, name), { synchronous: 'normal' })
      opened.push(db)
      await migrate(db, 'router', routerSteps)
      return db
    },
    async remove() {
      for (const db of opened) db.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const TEST_SEED = new Uint8Array(32).fill(7)
export const testSigner = await signer(TEST_SEED)

/** A writer with quick settings; what a test leaves out is harmless. */
export function testWriter(db: Db, options: Partial<TraceWriterOptions> = {}) {
  return traceWriter({
    db,
    clock: systemClock,
    log: silentLog(),
    metrics: createMetrics(),
    mode: 'best-effort',
    sha256: nativeSha256,
    signer: testSigner,
    ...options,
    limits: { flush_ms: 1, ...options.limits },
  })
}
