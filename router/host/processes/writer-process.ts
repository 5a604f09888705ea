import { rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { readEnv } from '../../../shared/env/read-env.ts'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import { frameOf, frameReader } from '../../../shared/host/processes/frames.ts'
import { stderrLines } from '../../../shared/host/stderr-lines.ts'
import { createLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import { pendingRecords } from '../../audit/pending-records.ts'
import { spentStore } from '../../budget/spent-store.ts'
import type { StoreSettings } from '../../config/routing-config.ts'
import { heldResponses } from '../../enforce/held-responses.ts'
import { routerEnv } from '../../env.ts'
import { ownWriter } from '../../receipts.ts'
import { routerSteps } from '../../schema/steps.ts'
import { publishKey } from '../../traces/keys.ts'
import { logAnchorFault } from '../anchor-file.ts'
import { receiptLocation } from '../receipt-location.ts'
import { openReceiptStorage, RECEIPT_LOG_PAGES } from '../receipt-thread/storage.ts'
import { accounts } from './accounts.ts'
import type { FromWriter, ToWriter } from './messages.ts'

export interface WriterProcess {
  page: () => Promise<string>
  gone: (process: number) => void
  /** Whether a process is connected. */
  isWanted: () => boolean
  close: () => Promise<void>
}

export interface WriterProcessOptions {
  vars: Record<string, string | undefined>
  /** The processes that an earlier writer had, and that may have something open. */
  left: readonly number[]
}

/** The one process of a service that writes receipts and keeps the accounts, at a socket for the others. */
export async function serveWriter(path: string, { vars, left }: WriterProcessOptions): Promise<WriterProcess> {
  const env = readEnv(routerEnv, vars)
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: stderrLines(env.ROUTER_LOG_FORMAT) })
  await logAnchorFault(env, log)
  const place = receiptLocation(env)
  const db = await openDb(env.ROUTER_DB, {
    checkpointPages: RECEIPT_LOG_PAGES,
    synchronous: place.durable ? 'full' : 'normal',
    ...(env.ROUTER_DB_TOKEN && { token: env.ROUTER_DB_TOKEN }),
  })
  await migrate(db, 'router', routerSteps)
  const { receiptStorage, close: closeStorage } = await openReceiptStorage(place)
  if (receiptStorage.signer) await publishKey(db, receiptStorage.signer, systemClock.now())
  const metrics = createMetrics()
  const spent = spentStore(db)
  const ledger = accounts({ clock: systemClock, log, store: spent, left })
  ledger.load(await spent.totals())
  const held = heldResponses(systemClock.monotonic, nativeSha256)
  // With the settings of the first process that has records.
  const begin = (store: StoreSettings) => {
    const deps = { db, receiptStorage, store, clock: systemClock, log, metrics, sha256: nativeSha256 }
    const { writer, old } = ownWriter(deps, { queue: Number.POSITIVE_INFINITY, tells: true })
    return { writer, old, waiting: pendingRecords(writer.depth) }
  }
  const desk = recordDesk({ begin, durable: place.durable })

  async function answer(from: number | undefined, { ask, question }: Extract<ToWriter, { ask: number }>) {
    if ('reserve' in question) return { reply: ask, answer: await ledger.reserve(from ?? 0, question.reserve) }
    if ('held' in question) return { reply: ask, answer: held.find(question.tenantId, question.held) }
    if ('find' in question) return { reply: ask, answer: desk.find(question.find, question.tenantId) }
    return { reply: ask, answer: true }
  }

  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    let from: number | undefined
    const say = (message: FromWriter) => void (socket.writable && socket.write(frameOf(message)))
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      sockets.delete(socket)
      desk.left(say)
    })
    socket.on(
      'data',
      frameReader(one => {
        const message = one as ToWriter
        if ('begin' in message) desk.joined(message.begin, say)
        else if ('frame' in message) desk.take(message.frame, message.records, say)
        else if ('process' in message) {
          from = message.process
          ledger.connected(from, message.open, message.spent, (stored, granted) => say({ stored, granted }))
        } else if ('spent' in message) ledger.spent(from ?? 0, message.spent)
        else if ('keep' in message) held.keep(message.tenantId, message.keep, message.holder)
        else void answer(from, message).then(say)
      }),
    )
  })
  await rm(path, { force: true })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))

  return {
    // What waits here the others count as waiting, too.
    page: async () => metrics.text().replaceAll(/^.*\brouter_queue_depth\b.*\n/gm, ''),
    isWanted: () => sockets.size > 0,
    gone: ledger.gone,
    async close() {
      server.close()
      await desk.close()
      await ledger.save()
      for (const socket of sockets) socket.end()
      await closeStorage()
      db.close()
    },
  }
}

type Say = (message: FromWriter) => void

interface RecordDeskDeps {
  durable: boolean
  begin: (store: StoreSettings) => ReturnType<typeof ownWriter> & { waiting: ReturnType<typeof pendingRecords> }
}

const STATUS_MS = 1000

/** Takes the records of other processes to the writer, and tells each of them what became of its own. */
function recordDesk({ begin, durable }: RecordDeskDeps) {
  let at: ReturnType<RecordDeskDeps['begin']> | undefined
  let closed = false
  const from = new Set<Say>()
  const beat = setInterval(() => {
    for (const say of from) status(say)
  }, STATUS_MS)

  function status(say: Say): void {
    if (at) say({ status: at.writer.status() })
  }

  return {
    joined(store: StoreSettings, say: Say): void {
      if (!closed) at ??= begin(store)
      from.add(say)
      status(say)
    },
    left(say: Say): void {
      from.delete(say)
    },
    take(frame: number, records: readonly UnsealedTrace[], say: Say): void {
      // Of a writer that ends: the next one gets them.
      if (at === undefined || closed) return
      const { writer, waiting } = at
      const outcomes = records.map(async record => {
        if (writer.enqueue(record) === 'dropped') throw new Error('neither the store nor the disk takes records')
        waiting.took(record)
        await writer.recorded(record.trace_id)
      })
      void Promise.allSettled(outcomes).then(settled => {
        const lost = settled.flatMap((one, place) =>
          one.status === 'rejected' ? [{ id: records[place]!.trace_id, why: why(one.reason) }] : [],
        )
        say({ done: frame, lost })
        if (lost.length > 0 || durable) status(say)
      })
    },
    find: (id: string, tenant: string | undefined) => at?.waiting.find(id, tenant),
    async close(): Promise<void> {
      closed = true
      clearInterval(beat)
      await at?.old.close()
      await at?.writer.close()
    },
  }
}

const why = (error: unknown): string => (error instanceof Error ? error.message : String(error))
