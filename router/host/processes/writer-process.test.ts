import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import { silentLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { heldResponses } from '../../enforce/held-responses.ts'
import { sampleTrace } from '../../traces/testing/records.ts'
import { joinProcesses, type RouterChannel } from './other-processes.ts'
import { remoteWriter } from './remote-writer.ts'
import { serveWriter } from './writer-process.ts'

let folder: string
let names = 0
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-writer-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const store = {
  queue: 1000,
  batch: 64,
  flushMs: 5,
  checkpointRecords: 256,
  checkpointSeconds: 60,
  retentionDays: 0,
  storeReasons: true,
}
const channel: RouterChannel = {
  say: () => undefined,
  gather: async () => [],
  answer: () => undefined,
}

async function place() {
  const name = String(names++)
  const vars = { ROUTER_DB: join(folder, `${name}.db`), ROUTER_LOG: 'off' }
  const path = join(folder, `${name}.sock`)
  return { path, vars, writer: await serveWriter(path, { vars, left: [] }) }
}

const remote = (path: string) =>
  remoteWriter({ path, durable: true, store, clock: systemClock, log: silentLog(), metrics: createMetrics() })

async function traces(file: string): Promise<string[]> {
  const db = await openDb(file)
  const { rows } = await db.execute('select trace_id from traces')
  db.close()
  return rows.map(row => String(row.trace_id))
}

it('a record that one process has handed over is found by the others, and stored once over the end of a writer', async () => {
  const { path, vars, writer } = await place()
  const one = remote(path)
  const other = joinProcesses({ process: 2, path, channel })
  const records = Array.from({ length: 40 }, () => sampleTrace({ at: Date.now() }))
  for (const record of records.slice(0, 20)) one.enqueue(record)
  await Promise.all(records.slice(0, 20).map(record => one.recorded(record.trace_id)))
  // The next ones are enqueued while the writer goes, and while there is none.
  const closing = writer.close()
  for (const record of records.slice(20, 30)) one.enqueue(record)
  await closing
  for (const record of records.slice(30)) one.enqueue(record)
  const next = await serveWriter(path, { vars, left: [] })
  await one.taken?.()
  const last = records.at(-1)!
  const found = await other.find(last.trace_id, undefined)
  const stored = await traces(vars.ROUTER_DB)
  expect(found?.trace_id ?? stored.find(id => id === last.trace_id)).toBe(last.trace_id)
  await Promise.all(records.map(record => one.recorded(record.trace_id)))
  await one.close()
  await other.close()
  await next.close()
  expect((await traces(vars.ROUTER_DB)).toSorted()).toEqual(records.map(record => record.trace_id).toSorted())
})

it('a response that one process has made is known to the others', async () => {
  const { path, writer } = await place()
  const held = () => heldResponses(systemClock.monotonic, nativeSha256)
  const [one, other] = [1, 2].map(process => joinProcesses({ process, path, channel }))
  const [first, second] = [one!.held(held()), other!.held(held())]
  const holder = { provider: 'p', model: 'p/m', sessionId: 's', tokens: 9 }
  // The first question waits for the connection, so that what is said next has one.
  await first.find('t', { ids: ['none'], sealed: [] })
  first.keep('t', { ids: ['resp_1'], sealed: ['secret'] }, holder)
  await first.find('t', { ids: ['none'], sealed: [] })
  expect(await second.find('t', { ids: ['resp_1'], sealed: [] })).toMatchObject({
    holders: [holder],
    hasUnknown: false,
  })
  expect(await second.find('t', { ids: [], sealed: ['secret'] })).toMatchObject({ makers: [holder] })
  expect(await second.find('other', { ids: ['resp_1'], sealed: [] })).toMatchObject({ hasUnknown: true })
  await one!.close()
  await other!.close()
  await writer.close()
})
