import { rm, stat } from 'node:fs/promises'
import { createRouter } from '../../router/router.ts'
import { routerSteps } from '../../router/schema/steps.ts'
import { type ChainHead, sealedRun, traceText } from '../../router/traces/canonical-trace.ts'
import { signCheckpoint } from '../../router/traces/checkpoint.ts'
import { insertBatch } from '../../router/traces/commit.ts'
import { publishKey } from '../../router/traces/keys.ts'
import { savingsByDay } from '../../router/traces/savings-days.ts'
import { sampleTrace } from '../../router/traces/testing/records.ts'
import { rowOf } from '../../router/traces/trace-row.ts'
import { traceWriter } from '../../router/traces/writer.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import { type Signer, signer } from '../../shared/sign/ed25519.ts'
import { GENESIS } from '../../shared/sign/record-chain.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { keepingOfTraces } from './keep-traces.ts'
import { type Growth, medianMs, note } from './measured.ts'

const DAY_MS = 86_400_000
const SPREAD_MS = 90 * DAY_MS
const BATCH = 256

async function sign(db: Db, key: Signer, head: ChainHead, prev: string): Promise<string> {
  const at = { ...head, feedback_seq: -1, feedback_hash: GENESIS, ts: new Date().toISOString(), prev_checkpoint: prev }
  const { checkpoint, digest } = await signCheckpoint({ kind: 'head', tenant_id: 'default', ...at }, key, nativeSha256)
  await db.execute({
    sql: "insert into checkpoints (tenant_id, kind, seq, digest, body) values ('default', 'head', ?, ?, ?)",
    args: [head.seq, digest, JSON.stringify(checkpoint)],
  })
  return digest
}

/** Stores with that many traces in one tenant's chain, written as the writer writes them, and what using them costs. */
export async function growthOfTraces(folder: string, sizes: number[], say: (line: string) => void): Promise<Growth> {
  const growth: Growth = { title: 'Traces: time of one operation', sizes, bytesPerRow: [], operations: [] }
  const key = await signer(new Uint8Array(32).fill(9))
  for (const size of sizes) {
    const path = `${folder}/traces-${size}.db`
    const db = await openDb(path, { synchronous: 'normal' })
    await migrate(db, 'router', routerSteps)
    await db.execute("insert into writer_lease (name, holder, epoch, expires_ms) values ('traces', 'bench', 1, 0)")
    await publishKey(db, key, new Date())
    const firstMs = Date.now() - SPREAD_MS
    let head: ChainHead | undefined
    let made = 0
    let middle = ''
    let digest = GENESIS
    async function append(count: number): Promise<void> {
      const run = sealedRun(nativeSha256)
      const rows = Array.from({ length: count }, () => {
        const record = sampleTrace({
          at: firstMs + Math.floor((Math.min(made, size) / size) * SPREAD_MS),
          session: `session-${made % 500}`,
          final: { response_id: `msg_${crypto.randomUUID()}`, upstream_request_id: `req_${crypto.randomUUID()}` },
        })
        if (made++ === size >> 1) middle = record.trace_id
        const { seq, hash, at, bytes } = run.add(traceText(record), head)
        head = { seq, hash }
        return { cells: rowOf(record, seq), at, bytes }
      })
      await db.execute(insertBatch(rows, run.bytes(), { holder: 'bench', epoch: 1 }))
      // As often as a router does it.
      if (head) digest = await sign(db, key, head, digest)
    }
    const began = performance.now()
    while (made < size) await append(Math.min(BATCH, size - made))
    await db.execute('pragma wal_checkpoint(truncate)')
    growth.bytesPerRow.push((await stat(path)).size / size)
    say(`${size} traces written in ${Math.round((performance.now() - began) / 1000)} s`)
    const appendMs = await medianMs(40, () => append(BATCH))

    const router = createRouter({ db, sha256: nativeSha256 })
    await router.ready()
    const get = async (path: string) => {
      const answer = await router.fetch(new Request(`http://local${path}`))
      const text = await answer.text()
      if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${text}`)
    }
    const days = savingsByDay({ db, clock: systemClock })
    const began90 = performance.now()
    for (let day = 0; day < 91; day++) await days.step(['default'], { holder: 'bench', epoch: 1 }, () => false)
    const sumUpMs = (performance.now() - began90) / 91
    const day = new Date(Date.now() - DAY_MS).toISOString()
    note(growth, [
      [`append of ${BATCH}`, appendMs],
      ['list of 50, newest', await medianMs(40, () => get('/-/traces?limit=50'))],
      ['get', await medianMs(100, () => get(`/-/traces/${middle}`))],
      ['savings of a day', await medianMs(5, () => get(`/-/savings?since=${encodeURIComponent(day)}`))],
      ['summing up a day, once', sumUpMs],
      ['savings of all 90 days', await medianMs(9, () => get('/-/savings'))],
      ['evals of all 90 days', await medianMs(9, () => get('/-/evals'))],
    ])
    await router.close()
    const log = silentLog()
    const deps = { db, clock: systemClock, log, metrics: createMetrics(), sha256: nativeSha256, signer: key }
    const writer = traceWriter({ ...deps, mode: 'durable' })
    writer.start()
    note(growth, await keepingOfTraces({ db, path, writer, before: new Date(firstMs + SPREAD_MS / 9) }))
    await writer.close()
    await db.close()
    for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
  }
  return growth
}
