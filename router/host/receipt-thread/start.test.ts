import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { createLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { programEnv } from '../../../tests/program-env.ts'
import { messagesAnswer } from '../../../tests/upstream/answers.ts'
import { answer, scriptedUpstream } from '../../../tests/upstream/scripted.ts'
import { observation } from '../../observe/observation.ts'
import { bodyRoom } from '../../proxy/handle-call.ts'
import { sampleUnhashed } from '../../receipt/testing/unhashed.ts'
import { hashed } from '../../receipt/unhashed.ts'
import { publishedKeys, trustedKeys } from '../../traces/keys.ts'
import { storedCheckpoints, storedRecords } from '../../traces/stored-records.ts'
import { sampleTrace } from '../../traces/testing/records.ts'
import { verifyRecords } from '../../traces/verify.ts'
import { storeFolder } from '../testing/store-folder.ts'
import { type ThreadedOptions, threadedReceipts } from '../testing/threaded-receipts.ts'

const program = new URL('../../cli/main.ts', import.meta.url).pathname

let folder: Awaited<ReturnType<typeof storeFolder>>
let names = 0
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())

async function started(options: Partial<ThreadedOptions> = {}) {
  const lines: string[] = []
  const metrics = createMetrics()
  const log = createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => void lines.push(line) })
  const path = folder.path(`${names++}.db`)
  return { ...(await threadedReceipts(path, { durable: false, log, metrics, ...options })), metrics, lines, path }
}

const ids = async (db: Db) =>
  (await db.execute('select trace_id from traces order by seq')).rows.map(row => String(row.trace_id))

async function verified(db: Db) {
  const keys = trustedKeys(await publishedKeys(db))
  const checkpoints = await storedCheckpoints(db)
  return verifyRecords({ records: storedRecords(db), checkpoints, keys, sha256: nativeSha256 })
}

const bytes = (text: string) => new TextEncoder().encode(text)

const HASHING = { sha256: nativeSha256, salt: new Uint8Array(32) }

/** A call as the relay sees it pass. */
function passed(traceId: string, request: string, answer: string, type = 'application/json') {
  const headers: [string, string][] = [
    ['User-Agent', 'claude-cli/1.0'],
    ['x-api-key', 'canary-key-0123456789'],
    ['X-Request-Id', 'client-1'],
  ]
  const one = observation(
    { traceId, tenantId: 'default', routeIx: null, api: 'messages', headers },
    bodyRoom(1000).open({ maxHeldBytes: undefined, maxBodyBytes: 1000 }),
    { clock: systemClock, hashing: HASHING },
  )
  one.requestChunk(bytes(request))
  one.called()
  one.head(200, [['Content-Type', type]], true)
  for (let at = 0; at < answer.length; at += 30_000) one.chunk(bytes(answer.slice(at, at + 30_000)))
  one.ended('complete')
  return one
}

const traceId = (n: number) => `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`

describe('the receipt thread', () => {
  it('makes, prices, seals and counts the records of calls, small and large', async () => {
    const { receipts, db, metrics, close, path } = await started()
    const ask = JSON.stringify({ model: 'claude-haiku-4-5', messages: [{ role: 'user', content: 'hi' }] })
    const short = JSON.stringify(messagesAnswer('Hello.'))
    const long = JSON.stringify(messagesAnswer('x'.repeat(100_000)))
    receipts.observed(passed(traceId(1), ask, short))
    receipts.observed(passed(traceId(2), ask, long))
    receipts.observed(passed(traceId(3), ask.replace('hi', 'h'.repeat(4_000_000)), short))
    receipts.observed(passed(traceId(4), 'no JSON', 'no JSON', 'text/plain'))
    await receipts.made()
    expect(metrics.text()).toContain('router_requests_total{api="messages",mode="observe",status_class="2xx"} 4\n')
    const waiting = await receipts.find('client-1')
    expect(waiting).toMatchObject({ mode: 'observe', final: { client_request_id: 'client-1' } })
    await close()
    const again = await folder.open(path.split('/').at(-1))
    expect(db.kind).toBe('file')
    const { rows } = await again.execute('select body from traces order by trace_id')
    const [first, second, third, fourth] = rows.map(row => JSON.parse(String(row.body)))
    expect(first).toMatchObject({
      request: { features: { requested_model: 'claude-haiku-4-5', agent: 'claude-code', body_bytes: ask.length } },
      attempts: [{ usage_source: 'provider', finish: 'end_turn' }],
    })
    expect(first.final.total_cost_usd).toBeGreaterThan(0)
    expect(second.final.total_cost_usd).toBe(first.final.total_cost_usd)
    expect(third.final.total_cost_usd).toBe(first.final.total_cost_usd)
    expect(third.request.features.body_bytes).toBe(ask.length + 3_999_998)
    expect(fourth.attempts[0].usage_source).toBe('none')
    expect(JSON.stringify(rows)).not.toContain('canary')
    expect(await verified(again)).toMatchObject({ valid: true, records: 4, tenants: [{ unanchored_tail: 0 }] })
  })

  it('has a bounded space for the objects of calls that are over, and as much for those in use as any thread', async () => {
    const { worker, close } = await started()
    const anyThread = new Worker('', { eval: true })
    // A thread says -1 until its engine has started.
    const heapOf = ({ resourceLimits }: Worker) => resourceLimits?.maxOldGenerationSizeMb ?? 1024
    await expect.poll(() => Math.min(heapOf(worker), heapOf(anyThread)), { timeout: 10_000 }).toBeGreaterThan(0)
    expect(worker.resourceLimits?.maxYoungGenerationSizeMb).toBe(24)
    expect(heapOf(worker)).toBeGreaterThanOrEqual(heapOf(anyThread))
    await anyThread.terminate()
    await close()
  })

  it('loses nothing that was handed over when it is closed at once', async () => {
    const { receipts, close, path } = await started()
    const records = Array.from({ length: 700 }, () => sampleTrace())
    for (const record of records) void receipts.record(() => sampleUnhashed({ trace: record }))
    await close()
    const again = await folder.open(path.split('/').at(-1))
    expect(await ids(again)).toEqual(records.map(({ trace_id }) => trace_id))
  })

  it('hashes the bodies of records, small and larger than may travel', async () => {
    const { receipts, close, path } = await started()
    const bodies = [200, 5_000_000].map(length => bytes(JSON.stringify({ messages: ['x'.repeat(length)] })))
    const records = bodies.map(body => sampleUnhashed({ body, sent: body.subarray(1) }))
    for (const record of records) void receipts.record(() => record)
    await close()
    const again = await folder.open(path.split('/').at(-1))
    const { rows } = await again.execute('select body from traces order by seq')
    expect(rows.map(row => JSON.parse(String(row.body)).request)).toEqual(
      records.map(record => hashed(record, HASHING).request),
    )
  })

  it('drops and counts what is beyond its queue', async () => {
    const { receipts, metrics, lines, db, close } = await started({ store: { queue: 10 } })
    for (let n = 0; n < 100; n++) void receipts.record(() => sampleUnhashed())
    expect(metrics.text()).toContain('router_traces_dropped_total 90\n')
    expect(lines.join()).toContain('the queue is full')
    await expect.poll(() => ids(db), { timeout: 20_000 }).toHaveLength(10)
    await expect.poll(() => metrics.text()).toContain('router_traces_written_total 10\n')
    expect(metrics.text()).toContain('router_queue_depth 0\n')
    await close()
  })

  it('goes on in the main thread when it ends, and counts what it lost', async () => {
    const { receipts, worker, metrics, lines, db, close } = await started()
    void receipts.record(() => sampleUnhashed())
    await receipts.made()
    const ended = once(worker, 'exit')
    worker.postMessage('what no thread understands')
    await ended
    expect(lines.join()).toContain('the thread that keeps receipts ended')
    const later = Array.from({ length: 5 }, () => sampleTrace())
    for (const record of later) await receipts.record(() => sampleUnhashed({ trace: record }))
    receipts.observed(passed(traceId(9), '{}', '{}'))
    await receipts.made()
    await expect
      .poll(() => ids(db), { timeout: 5000 })
      .toEqual(expect.arrayContaining([...later.map(({ trace_id }) => trace_id), traceId(9)]))
    expect(await receipts.status()).toMatchObject({ writer: 'ok' })
    const kept = (await ids(db)).length
    const dropped = Number(/router_traces_dropped_total (\d+)/.exec(metrics.text())?.[1] ?? 0)
    expect(kept + dropped).toBe(7)
    await close()
  })

  it('keeps every durable record whose answer waits, also when the thread ends in between', async () => {
    const { receipts, worker, db, close, lines } = await started({ durable: true, store: { batch: 8 } })
    const records = Array.from({ length: 300 }, () => sampleTrace())
    const kept = records.map(record => receipts.record(() => sampleUnhashed({ trace: record })))
    await kept[0]
    worker.postMessage('what no thread understands')
    await Promise.all(kept)
    const there = new Set(await ids(db))
    expect(records.filter(({ trace_id }) => !there.has(trace_id))).toEqual([])
    expect(there.size).toBe(records.length)
    expect(lines.join()).toContain('kept in the main thread from now on')
    await close()
    expect(lines.join()).not.toContain('could not be recorded')
  })

  it('ends without a word of loss where the other thread is too busy to see it end', async () => {
    const { receipts, lines, close } = await started()
    receipts.observed(passed(traceId(1), '{}', '{}'))
    let closed = false
    const closing = close().then(() => {
      closed = true
    })
    while (!closed) {
      await new Promise(setImmediate)
      for (const began = performance.now(); performance.now() - began < 60; );
    }
    await closing
    expect(lines).toEqual([])
  })

  it('loses no call that was answered before SIGTERM', async () => {
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer())))
    const path = folder.path('served.db')
    const child = spawn(process.execPath, [program, 'serve', '--bind', '127.0.0.1:0', '--db', path], {
      env: { ...programEnv, ROUTER_UPSTREAM_MESSAGES: upstream.origin, RUST_LOG: 'error' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const origin = /http:\S+/.exec(String((await once(child.stdout, 'data'))[0]))![0]
    const told: string[] = []
    for (let round = 0; round < 10; round++) {
      const calls = Array.from({ length: 20 }, () => fetch(`${origin}/v1/messages`, { method: 'POST', body: '{}' }))
      for (const call of await Promise.all(calls)) {
        await call.arrayBuffer()
        told.push(call.headers.get('x-router-trace-id') ?? '')
      }
    }
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    await upstream.close()
    const db = await folder.open('served.db')
    expect((await ids(db)).sort()).toEqual(told.sort())
    expect(await verified(db)).toMatchObject({ valid: true, records: 200, tenants: [{ unanchored_tail: 0 }] })
  })
})
