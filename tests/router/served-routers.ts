import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodeCalls } from '../../router/host/node-exchange.ts'
import { undiciTransport } from '../../router/host/undici-transport.ts'
import { createRouter, type RouterOptions } from '../../router/router.ts'
import type { AnswerSink, Timeouts } from '../../router/upstream/transport.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { cutConnection, listen } from '../../shared/host/serve.ts'
import { createLog } from '../../shared/log/log.ts'
import { type TraceRecord, traceRecord } from '../../shared/wire/router/trace.ts'

export interface ServedRouter {
  origin: string
  logs: readonly string[]
  /** Closes the router, and gives every receipt and the bytes of the store's files. */
  stop(): Promise<{ receipts: TraceRecord[]; store: Buffer }>
}

export interface ServedOptions extends Omit<RouterOptions, 'db' | 'log' | 'transport'> {
  /** Limits of observed calls, which no config sets. */
  timeouts?: Timeouts
  /** Relays observed calls on Node's own objects, as the Node host does; else as every other host does. */
  direct?: boolean
}

/** A router on a socket and a store in a file, put together as the Node host does, with a log that nothing redacts. */
export async function servedRouter({ timeouts, direct = true, ...options }: ServedOptions): Promise<ServedRouter> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-served-'))
  const file = join(folder, 'router.db')
  const db = await openDb(file, { synchronous: 'normal' })
  const logs: string[] = []
  const log = createLog({ filter: { all: 'trace', byTarget: new Map() }, write: line => void logs.push(line) })
  const pool = undiciTransport({ connectMs: 1000 })
  const observed = (given: Timeouts) => timeouts ?? given
  const transport =
    options.config === undefined
      ? {
          ...pool,
          send: (call: Parameters<typeof pool.send>[0]) => pool.send({ ...call, timeouts: observed(call.timeouts) }),
          relay: (call: Parameters<typeof pool.relay>[0], sink: AnswerSink) =>
            pool.relay({ ...call, timeouts: observed(call.timeouts) }, sink),
        }
      : pool
  const router = createRouter({ ...options, db, log, transport, sha256: nativeSha256, cut: cutConnection })
  await router.ready()
  const server = await listen({
    bind: { host: '127.0.0.1', port: 0 },
    fetch: router.fetch,
    ...(direct && { direct: nodeCalls().accept(router.handleCall()) }),
    bodyMs: 60_000,
  })
  return {
    origin: server.origin,
    logs,
    async stop() {
      await server.close(1000)
      await router.close()
      const { rows } = await db.execute('select body from traces order by tenant_id, seq')
      const receipts = rows.map(row => traceRecord.parse(JSON.parse(String(row.body))))
      db.close()
      const files = [file, `${file}-wal`].map(path => readFile(path).catch(() => Buffer.alloc(0)))
      const store = Buffer.concat(await Promise.all(files))
      await rm(folder, { recursive: true, force: true })
      return { receipts, store }
    },
  }
}
