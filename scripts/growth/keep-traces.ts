import { rm } from 'node:fs/promises'
import { verifyReceipts } from '../../router/mcp/verify-receipts.ts'
import { sampleTrace } from '../../router/traces/testing/records.ts'
import type { TraceWriter } from '../../router/traces/writer.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { besides, command } from './beside.ts'
import { type Figure, medianMs } from './measured.ts'

export interface StoreOfTraces {
  db: Db
  path: string
  /** Of the product, in durable mode. */
  writer: TraceWriter
  /** What is dropped: a ninth. */
  before: Date
}

/** Proving, keeping a copy and making room, while a router writes receipts. */
export async function keepingOfTraces({ db, path, writer, before }: StoreOfTraces): Promise<Figure[]> {
  async function append(): Promise<void> {
    const record = sampleTrace({ at: Date.now() })
    writer.enqueue(record)
    await writer.recorded(record.trace_id)
  }
  const newest = () => verifyReceipts({ limit: 1000 }, { db, tenant: 'default', sha256: nativeSha256 })
  const asked = await newest()
  if (!asked.valid) throw new Error(`the chain does not hold: ${JSON.stringify(asked)}`)
  const figures: Figure[] = [['verify of the newest 1,000', await medianMs(5, newest)]]
  const router = (...args: string[]) => command('router', args)
  const { measured } = besides(figures, 'append', append)
  await measured('verify', () => router('verify', '--db', path))
  await measured('backup', () => router('backup', `${path}.copy`, '--db', path))
  await rm(`${path}.copy`)
  await measured('retention of a ninth', async () => void (await writer.prune('default', before)))
  await measured('compact', () => router('compact', '--db', path))
  await writer.flush()
  return figures
}
