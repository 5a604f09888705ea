import type { MessagePort } from 'node:worker_threads'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import type { Level, Log } from '../../../shared/log/log.ts'
import { redactor } from '../../../shared/log/redact.ts'
import { loadBuiltinPrices } from '../../../shared/prices/builtin.ts'
import { type WriteRequest, type WriteResult, writePerformer } from '../../../shared/sql/forwarding-db.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { metricsRelay } from '../../metrics/metrics-relay.ts'
import { unpackCalls } from '../../observe/packed-calls.ts'
import type { RecordSettings } from '../../observe/record-maker.ts'
import { unpackRecords } from '../../receipt/packed-records.ts'
import type { Hashing } from '../../receipt/request-part.ts'
import { finished, idOf } from '../../receipt/unhashed.ts'
import { type InThreadReceipts, receiptsInThread } from '../../receipts.ts'
import type { FromThread, Question, ThreadReport, ToThread } from './messages.ts'
import { openReceiptStorage, RECEIPT_LOG_PAGES } from './storage.ts'

/** How long a report to the other thread may wait; one that a caller waits for is sent at once. */
const REPORT_MS = 20
const WATCH_MS = 1000

/** The program of the receipt thread: it makes records of the calls it is handed, seals them and writes them to a store of its own opening. */
export function serveReceipts(port: MessagePort): void {
  const say = (message: FromThread) => port.postMessage(message)
  let receipts: ReturnType<typeof receiptServer> | undefined
  // One after the other, so that an answer tells of everything that was handed over before the question.
  let last: Promise<unknown> = Promise.resolve()
  port.on('message', (message: ToThread) => {
    last = last.then(async () => {
      if ('begin' in message) {
        receipts = await begin(message.begin, say, () => port.close())
        say({ ready: true })
      } else if ('write' in message) {
        if (receipts) say(await receipts.write(message))
      } else if ('ask' in message) await receipts?.answer(message.ask, message.question)
      else await receipts?.take(message)
    })
    last = last.catch((error: unknown) => {
      say({ failed: error instanceof Error ? error.message : String(error) })
      // In a thread this ends the thread alone; the other side goes on without it.
      process.exit(1)
    })
  })
}

type Begin = Extract<ToThread, { begin: unknown }>['begin']

async function begin({ store, settings, salt, ...place }: Begin, say: (message: FromThread) => void, end: () => void) {
  const db = await openDb(place.address, {
    checkpointPages: RECEIPT_LOG_PAGES,
    synchronous: place.durable ? 'full' : 'normal',
    ...(place.token && { token: place.token }),
  })
  const { receiptStorage, close } = await openReceiptStorage(place)
  const relay = metricsRelay()
  const current = { settings }
  const perform = writePerformer()
  const hashing = { sha256: nativeSha256, salt }
  let prices: ReturnType<typeof loadBuiltinPrices> | undefined
  const kept = receiptsInThread({
    db,
    receiptStorage,
    store,
    clock: systemClock,
    log: threadLog(say),
    metrics: relay.metrics,
    sha256: nativeSha256,
    hashing,
    settings: () => current.settings,
    builtinPrices: () => (prices ??= loadBuiltinPrices()),
  })
  return receiptServer({
    kept,
    hashing,
    say,
    write: order => perform(db, order),
    durable: place.durable,
    deltas: relay.take,
    spillBytes: () => receiptStorage.spill?.bytes() ?? 0,
    use(next) {
      current.settings = next
    },
    async close() {
      await close()
      db.close()
    },
    end,
  })
}

interface ServerDeps {
  kept: InThreadReceipts
  hashing: Hashing
  say: (message: FromThread) => void
  write: (order: WriteRequest) => Promise<WriteResult>
  durable: boolean
  deltas: () => ThreadReport['deltas']
  spillBytes: () => number
  use: (settings: RecordSettings) => void
  close: () => Promise<void>
  /** Nothing more is to come: the thread may end. */
  end: () => void
}

/** Reports of the records to the other thread, by and by. */
function recordReports({ kept, say, deltas, spillBytes }: Pick<ServerDeps, 'kept' | 'say' | 'deltas' | 'spillBytes'>) {
  let taken = 0
  let told: string[] = []
  let lost: ThreadReport['lost'] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let urgent = false

  function report() {
    clearTimeout(timer)
    timer = undefined
    urgent = false
    const depth = kept.writer.depth()
    const status = kept.writer.status()
    say({ report: { taken, depth, kept: told, lost, status, spillBytes: spillBytes(), deltas: deltas() } })
    told = []
    lost = []
    if (depth > 0 || status.writer !== 'ok' || status.spill !== 'ok') soon()
  }

  // A writer may fail while nothing is written.
  setInterval(() => {
    if (kept.writer.status().writer !== 'ok') soon()
  }, WATCH_MS).unref()

  function soon() {
    timer ??= setTimeout(report, REPORT_MS)
  }

  function now() {
    if (urgent) return
    urgent = true
    setImmediate(report)
  }

  return {
    report,
    soon,
    took() {
      taken++
    },
    stored(id: string) {
      told.push(id)
      now()
    },
    lost(id: string, why: string) {
      lost.push({ id, why })
      now()
    },
    stop: () => clearTimeout(timer),
  }
}

function receiptServer({ kept, hashing, say, write, durable, use, close, end, ...rest }: ServerDeps) {
  const reports = recordReports({ kept, say, ...rest })

  function watch(id: string) {
    if (!durable) return
    kept.writer.recorded(id).then(
      () => reports.stored(id),
      (error: unknown) => reports.lost(id, error instanceof Error ? error.message : String(error)),
    )
  }

  /** A promise only where taking is one: most calls are taken at once. */
  function one(id: string, take: () => void | Promise<void>): void | Promise<void> {
    try {
      const taking = take()
      if (taking instanceof Promise)
        return taking.then(
          () => took(id),
          (error: unknown) => failed(id, error),
        )
      took(id)
    } catch (error) {
      failed(id, error)
    }
  }

  function took(id: string) {
    watch(id)
    reports.took()
  }

  function failed(id: string, error: unknown) {
    say({ log: { level: 'error', target: 'waybill', message: NOT_RECORDED, fields: { error, trace_id: id } } })
    reports.lost(id, NOT_RECORDED)
    reports.took()
  }

  return {
    write,
    async take({ settings, calls, records }: Extract<ToThread, { calls: unknown }>) {
      if (settings) use(settings)
      for (const call of calls ? unpackCalls(calls) : []) {
        const taking = one(call.traceId, () => kept.call(call))
        if (taking) await taking
      }
      for (const recorded of records ? unpackRecords(records) : []) {
        one(idOf(recorded), () => kept.take(finished(recorded, hashing)))
      }
      reports.soon()
    },
    async answer(ask: number, question: Question) {
      if (question === 'close') {
        await kept.close()
        await close()
      }
      const found = typeof question === 'object' ? await kept.find(question.find, question.tenant) : undefined
      if (question !== 'close') await kept.made()
      reports.report()
      say({ reply: ask, found })
      if (question !== 'close') return
      reports.stop()
      end()
    },
  }
}

const NOT_RECORDED = 'a call could not be recorded'

/** A log whose lines are written, filtered and redacted by the thread that started this one. */
function threadLog(say: (message: FromThread) => void): Log {
  const redact = redactor()
  const under = (target: string): Log => {
    const at = (level: Level): Log['error'] => {
      return (message, fields) => {
        try {
          say({ log: { level, target, message, fields } })
        } catch {
          // What cannot be handed to another thread is said as text.
          say({ log: { level, target, message, fields: fields && { fields: String(fields.error ?? '') } } })
        }
      }
    }
    return {
      error: at('error'),
      warn: at('warn'),
      info: at('info'),
      debug: at('debug'),
      trace: at('trace'),
      target: under,
      redact,
    }
  }
  return under('waybill')
}
