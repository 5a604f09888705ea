import { afterAll, beforeAll, expect, it } from 'vitest'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { slice } from '../../tests/slice.ts'
import { storedCheckpoints, storedRecords } from '../traces/stored-records.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { verifyRecords } from '../traces/verify.ts'
import { storeFolder, testSigner, testWriter } from './testing/store-folder.ts'
import { verifiedInThreads } from './verify-threads.ts'

const records = 40
const stretch = 7
const keys = new Map([[testSigner.keyId, testSigner.publicKey]])

let folder: Awaited<ReturnType<typeof storeFolder>>
let names = 0
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())

async function filled(): Promise<{ db: Db; address: string }> {
  const name = `${names++}.db`
  const db = await folder.open(name)
  const writer = testWriter(db, { limits: { checkpoint_records: 10, batch: 5 } })
  for (let at = 0; at < records; at++) writer.enqueue(sampleTrace({ at, tenant: at % 4 === 0 ? 'b' : 'a' }))
  await writer.close()
  return { db, address: folder.path(name) }
}

async function both({ db, address }: { db: Db; address: string }, tenant?: string) {
  const rest = { checkpoints: await storedCheckpoints(db), keys, sha256: nativeSha256, ...(tenant && { tenant }) }
  const here = await verifyRecords({ records: storedRecords(db, tenant), ...rest })
  const threads = verifiedInThreads(db, { address, tenant, stretch, threads: 2 })
  expect(await verifyRecords({ records: threads, ...rest })).toEqual(here)
  return here
}

it('accepts a store that holds, for all tenants and for one', async () => {
  const store = await filled()
  expect(await both(store)).toMatchObject({ valid: true, records })
  expect(await both(store, 'b')).toMatchObject({ valid: true, records: records / 4 })
})

const TAMPERING = {
  'a body that was edited':
    "update traces set body = replace(body, '0.0092', '0.0093') where tenant_id = 'a' and seq = ?",
  'a column that was edited': "update traces set total_nano = 1 where tenant_id = 'a' and seq = ?",
  'a record that was taken out': "delete from traces where tenant_id = 'a' and seq = ?",
  'a tail that was cut': "delete from traces where tenant_id = 'a' and seq >= ?",
  'a record in a place so far behind that no number is it':
    "update traces set seq = seq + 1152921504606846976 where tenant_id = 'a' and seq = ?",
  'a body that is no JSON': "update traces set body = substr(body, 2) where tenant_id = 'a' and seq = ?",
  'a record put in the place of another': `update traces set body =
    (select body from traces b where b.tenant_id = 'a' and b.seq = case traces.seq when 29 then 28 else traces.seq + 1 end)
    where tenant_id = 'a' and seq = ?`,
}

it.each(Object.entries(TAMPERING))(
  'finds %s where checking in one thread finds it, also at the seams',
  async (_, sql) => {
    for (const seq of slice(`seams ${sql}`, [0, stretch - 1, stretch, 29], 2)) {
      const store = await filled()
      await store.db.execute({ sql, args: [seq] })
      const report = await both(store)
      expect(report.tenants.find(({ tenant_id }) => tenant_id === 'a')?.broken_at).toBe(seq)
    }
  },
  60_000,
)

it('finds a row in front of the chain, which no record of it names', async () => {
  const store = await filled()
  await store.db.execute("create temp table x as select * from traces where tenant_id = 'a' and seq = 4")
  await store.db.execute("update x set seq = -3, trace_id = 'another'")
  await store.db.execute('insert into traces select * from x')
  const report = await both(store)
  expect(report.tenants.find(({ tenant_id }) => tenant_id === 'a')).toMatchObject({ broken_at: 0, records: 31 })
})

it('finds an id that stands in two stretches', async () => {
  const store = await filled()
  await store.db.execute('drop index traces_trace_id')
  await store.db.execute(`update traces set trace_id = (select trace_id from traces where tenant_id = 'a' and seq = 2)
    where tenant_id = 'a' and seq = 20`)
  await both(store)
})

it('passes on that a thread cannot read the store', async () => {
  const { db } = await filled()
  const threads = verifiedInThreads(db, { address: folder.path('nothing.db'), stretch, threads: 2 })
  await expect(verifyRecords({ records: threads, sha256: nativeSha256 })).rejects.toThrow('There is no database at')
})
