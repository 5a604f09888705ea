import { openDb } from '../../shared/host/open-libsql.ts'
import { retryBusy } from '../../shared/sql/db-fault.ts'

/** One writing process of a database: rows of ten, one commit after the other, for so many seconds. Prints what came of it. */
const [url = '', seconds = '1', name = ''] = process.argv.slice(2)
const db = await openDb(url)
await db.execute('create table if not exists bench (writer text not null, at integer not null, text text not null)')
const rows = Array.from({ length: 10 }, () => '(?1, ?2, ?3)').join(', ')
const statement = { sql: `insert into bench (writer, at, text) values ${rows}`, args: [name, 0, 'x'.repeat(100)] }
let [commits, worstMs, worstRefused] = [0, 0, 0]
const began = performance.now()
while (performance.now() - began < Number(seconds) * 1000) {
  const before = performance.now()
  let sent = 0
  const write = () => {
    sent++
    return db.write([statement])
  }
  // As the product does where the server says busy; the time counts.
  await retryBusy(write, { retries: 20 })
  const ms = performance.now() - before
  if (ms > worstMs) [worstMs, worstRefused] = [ms, sent - 1]
  commits++
}
const tookMs = performance.now() - began
process.stdout.write(JSON.stringify({ commits, worstMs, worstRefused, tookMs }))
await db.close()
