import { writeFile } from 'node:fs/promises'
import { Transform } from 'node:stream'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { typed } from '../../shared/cli/testing/typed.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { storeFolder, testSigner, testWriter } from '../host/testing/store-folder.ts'
import { verifyReceipts } from '../mcp/verify-receipts.ts'
import { publishKey } from '../traces/keys.ts'
import { storedStretch } from '../traces/stored-records.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { checkedLots } from '../traces/verify.ts'
import type { TraceWriter } from '../traces/writer.ts'
import { routerProgram } from './commands.ts'

// More than a page of records, so that a reader comes back for the rest.
const RECORDS = 600
const DAY_MS = 86_400_000
const at = (count: number) => Date.UTC(2026, 0, 1) + count * 60_000
/** Drops the first five hundred. */
const OLD = new Date(at(500))

let folder: Awaited<ReturnType<typeof storeFolder>>
let db: Db
let writer: TraceWriter
let stores = 0
beforeAll(async () => {
  folder = await storeFolder()
})
beforeEach(async () => {
  stores++
  db = await folder.open(`router-${stores}.db`)
  await publishKey(db, testSigner, new Date())
  writer = testWriter(db, { limits: { checkpoint_records: 50 } })
  for (let count = 0; count < RECORDS; count++) writer.enqueue(sampleTrace({ tenant: 'a', at: at(count) }))
  await writer.flush()
})
afterAll(() => folder.remove())

/** Takes the first piece only once something has happened to the store. */
function readerThat(meanwhile: () => Promise<unknown>): Transform {
  let happened: Promise<unknown> | undefined
  return new Transform({
    writableHighWaterMark: 1,
    transform(piece, _, taken) {
      happened ??= meanwhile()
      void happened.then(() => taken(null, piece))
    },
  })
}

async function exported(meanwhile: () => Promise<unknown>) {
  const path = folder.path(`router-${stores}.db`)
  const args = ['export', '--db', path, '--feedback', '--checkpoints']
  return typed(routerProgram, args, { stdout: readerThat(meanwhile) })
}

async function verdict(text: string, ...args: string[]) {
  const file = folder.path(`export-${stores}.jsonl`)
  await writeFile(file, text)
  const { code, out } = await typed(routerProgram, ['verify', '--file', file, '--json', ...args])
  return { code, report: JSON.parse(out) as unknown }
}

it('an export beside a router that goes on has no checkpoint of what it has not', async () => {
  const { code, out } = await exported(async () => {
    for (let count = 0; count < RECORDS; count++)
      writer.enqueue(sampleTrace({ tenant: count % 2 === 0 ? 'a' : 'new', at: at(RECORDS) + DAY_MS + count }))
    await writer.close()
  })
  expect(code).toBe(0)
  const { report } = await verdict(out, '--allow-unsigned')
  expect(report).toMatchObject({ valid: true, tenants: [{ tenant_id: 'a', reason: null }] })
})

it('an export whose records were dropped while it was read says so, and is none', async () => {
  const { code, err } = await exported(async () => {
    expect(await writer.prune('a', OLD)).toBe(500)
    await writer.close()
  })
  expect(code).toBe(1)
  expect(err).toContain('records were dropped (retention_days) while they were read: run it again')
})

it('a store whose records were dropped while it was verified is read again', async () => {
  let passes = 0
  const report = await verifyReceipts(
    {},
    {
      db,
      tenant: 'a',
      sha256: nativeSha256,
      wholeChain: async function* (wanted) {
        if (passes++ === 0) await writer.prune('a', OLD)
        yield* checkedLots(storedStretch(db, { tenant: 'a' }), { wanted, only: 'a', sha256: nativeSha256 })
      },
    },
  )
  expect(report).toMatchObject({ valid: true, records: 100 })
  expect(passes).toBe(2)
  await writer.close()
})
