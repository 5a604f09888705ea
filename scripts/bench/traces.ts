import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileSink, RECEIPT_LOG_PAGES } from '../../router/host/receipt-thread/storage.ts'
import { routerSteps } from '../../router/schema/steps.ts'
import { type ChainHead, sealedRun, traceText } from '../../router/traces/canonical-trace.ts'
import { insertBatch } from '../../router/traces/commit.ts'
import { sampleTrace } from '../../router/traces/testing/records.ts'
import { rowOf } from '../../router/traces/trace-row.ts'
import { traceWriter } from '../../router/traces/writer.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { silentLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { Bench, Figure } from './harness.ts'
import { benchDb } from './journal-rows.ts'

const perRound = 40_000
const verified = 1_000_000
const sessions = 500
const throughWriter = 'through the writer'

export const tracesBench: Bench = {
  title: 'Trace records',
  about: `Records of about 1.9 kB (one attempt, one gate; the seven hashes alone are 0.5 kB) into a WAL file, synchronous=NORMAL, batches of 256, with checkpoints and their copies in a file, as the receipt thread writes them, all indexes and ${sessions} sessions in turn. "sealing alone" is the canonical form, the chain and the columns without a store.`,
  unit: 'records/s',
  rounds: 5,
  expectations: [
    {
      says: `verify of ${verified.toLocaleString('en-US')} records`,
      value: ({ figures }) => figure(figures, 'verify'),
      atMost: 15,
    },
    { says: 'memory of that, over the first tenth', value: ({ figures }) => figure(figures, 'grown'), atMost: 100 },
  ],
  async prepare() {
    const { db, close } = await benchDb('normal', RECEIPT_LOG_PAGES)
    const path = await fileOf(db)
    await migrate(db, 'router', routerSteps)
    const key = await signer(new Uint8Array(32).fill(1))
    const writer = traceWriter({
      db,
      clock: systemClock,
      log: silentLog(),
      metrics: createMetrics(),
      mode: 'best-effort',
      sha256: nativeSha256,
      signer: key,
      sinks: [fileSink(`${path}.checkpoints.jsonl`)],
    })
    return {
      variants: [
        { name: throughWriter, round: () => written(writer, records(perRound)) },
        { name: 'sealing alone', round: async () => sealedOnly(records(perRound)) },
      ],
      async figures() {
        await writer.close()
        return verifyFigures(db, path)
      },
      close,
    }
  },
}

async function fileOf(db: Db): Promise<string> {
  return rowsOf<{ file: string }>(await db.execute('pragma database_list'))[0]!.file
}

function figure(figures: readonly Figure[], word: string): number {
  return figures.find(({ name }) => name.includes(word))?.value ?? Number.NaN
}

function records(count: number, from = Date.now()): UnsealedTrace[] {
  return Array.from({ length: count }, (_, index) =>
    sampleTrace({
      at: from + index,
      session: `session-${index % sessions}`,
      final: { response_id: `msg_${crypto.randomUUID()}`, upstream_request_id: `req_${crypto.randomUUID()}` },
    }),
  )
}

/** Offered as fast as the queue takes them, until all are committed. */
async function written(writer: ReturnType<typeof traceWriter>, list: readonly UnsealedTrace[]): Promise<number> {
  const started = performance.now()
  for (let at = 0; at < list.length; ) {
    for (; at < list.length && writer.depth() < 4096; at++) writer.enqueue(list[at]!)
    await new Promise(resolve => setTimeout(resolve, 0))
  }
  await writer.flush()
  return (list.length * 1000) / (performance.now() - started)
}

function sealedOnly(list: readonly UnsealedTrace[]): number {
  let previous: ChainHead | undefined
  const started = performance.now()
  for (let at = 0; at < list.length; at += 256) previous = batchOf(list.slice(at, at + 256), previous).previous
  return (list.length * 1000) / (performance.now() - started)
}

function batchOf(list: readonly UnsealedTrace[], head: ChainHead | undefined) {
  const run = sealedRun(nativeSha256)
  let previous = head
  const rows = list.map(record => {
    const { seq, hash, at, bytes } = run.add(traceText(record), previous)
    previous = { seq, hash }
    return { cells: rowOf(record, seq), at, bytes }
  })
  return { previous, statement: insertBatch(rows, run.bytes(), { holder: 'bench', epoch: 1 }) }
}

/** A chain of a million records, verified by a process of its own, so that its memory is its own. */
async function verifyFigures(db: Db, path: string): Promise<Figure[]> {
  await db.execute('delete from traces')
  await db.execute('delete from checkpoints')
  await db.execute(
    "insert into writer_lease (name, holder, epoch, expires_ms) values ('traces', 'bench', 1, 0) on conflict do update set holder = 'bench', epoch = 1",
  )
  let head: ChainHead | undefined
  for (let at = 0; at < verified; at += 1000) {
    const { previous, statement } = batchOf(records(1000, Date.UTC(2026, 0, 1) + at), head)
    head = previous
    await db.execute(statement)
  }
  const child = spawn(process.execPath, [new URL('./traces-verify.ts', import.meta.url).pathname, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let out = ''
  child.stdout.on('data', chunk => {
    out += String(chunk)
  })
  await once(child, 'close')
  const { valid, records: count, seconds, early, peak } = JSON.parse(out) as Record<string, number>
  if (!valid || count !== verified) throw new Error(`verify of the bench's own chain failed: ${out}`)
  return [
    { name: `verify of ${verified.toLocaleString('en-US')} stored records`, value: seconds ?? Number.NaN, unit: 's' },
    { name: 'its memory at the peak', value: peak ?? Number.NaN, unit: 'MiB' },
    { name: 'its memory grown after the first tenth', value: (peak ?? Number.NaN) - (early ?? 0), unit: 'MiB' },
  ]
}
