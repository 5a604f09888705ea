import { once } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { silentLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { dbFault, isFailedCondition } from '../../../shared/sql/db-fault.ts'
import { forwardingDb } from '../../../shared/sql/forwarding-db.ts'
import { storeFolder } from '../testing/store-folder.ts'
import { threadedReceipts } from '../testing/threaded-receipts.ts'

let folder: Awaited<ReturnType<typeof storeFolder>>
let names = 0
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())

async function started() {
  const path = folder.path(`${names++}.db`)
  const made = await threadedReceipts(path, { durable: false, log: silentLog(), metrics: createMetrics() })
  await made.db.execute('create table told (name text primary key, size integer not null, raw blob) strict')
  return { ...made, elsewhere: forwardingDb(made.db, { write: made.receipts.write! }) }
}

const put = (name: string, size: number | null) => ({
  sql: 'insert into told (name, size) values (?, ?) returning name, size * 2 as twice',
  args: [name, size],
})

it('the thread makes the transactions of the other one, whole or not at all, and gives what they came to', async () => {
  const { elsewhere, db, close } = await started()
  const [first, second] = await elsewhere.write([
    put('one', 21),
    { sql: "insert into told (name, size, raw) values ('raw', 0, ?)", args: [new Uint8Array([1, 2, 3])] },
  ])
  expect(first!.rows.map(row => [row.name, row.twice, row[1]])).toEqual([['one', 42, 42]])
  expect(second!.rowsAffected).toBe(1)
  const unmet = await elsewhere.write([put('two', 1), put('three', null)]).catch((error: unknown) => error)
  expect([isFailedCondition(unmet, 'told.size'), dbFault(unmet)]).toEqual([true, 'statement'])
  // What was written there can be read here at once.
  const { rows } = await db.execute('select name, raw from told order by name')
  expect(rows.map(row => row.name)).toEqual(['one', 'raw'])
  expect(new Uint8Array(rows[1]!.raw as ArrayBuffer)).toEqual(new Uint8Array([1, 2, 3]))
  const one = await elsewhere.execute("update told set size = 5 where name = 'one'")
  expect(one.rowsAffected).toBe(1)
  expect((await elsewhere.execute("select size from told where name = 'one'")).rows[0]?.size).toBe(5)
  expect(await elsewhere.write([])).toEqual([])
  await close()
})

it('nobody here waits while another process holds the lock', async () => {
  const { elsewhere, close, path } = await started()
  const other = await folder.open(path.split('/').at(-1)!)
  const held = await other.client.transaction('write')
  let turns = 0
  const beat = setInterval(() => turns++, 5)
  const waiting = elsewhere.write([put('late', 1)])
  await new Promise(resolve => setTimeout(resolve, 200))
  expect(turns).toBeGreaterThan(10)
  await held.rollback()
  await waiting
  clearInterval(beat)
  other.close()
  await close()
})

it('what was on its way when the thread ended may have been written, and later writes are made here', async () => {
  const { elsewhere, worker, db, close } = await started()
  const ended = once(worker, 'exit')
  worker.postMessage('what no thread understands')
  const lost = await elsewhere.write([put('lost', 1)]).catch((error: unknown) => error)
  expect(dbFault(lost)).toBe('unknown')
  await ended
  await elsewhere.write([put('later', 1)])
  expect((await db.execute("select name from told where name = 'later'")).rows).toHaveLength(1)
  await close()
})
