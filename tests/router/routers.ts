import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { undiciTransport } from '../../router/host/undici-transport.ts'
import { createRouter, type Router, type RouterOptions } from '../../router/router.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { type TraceRecord, traceRecord } from '../../shared/wire/router/trace.ts'
import { type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'

export interface TestRouter {
  router: Router
  db: Db
  post(path: string, body: object | string, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>
  /** Every receipt that is sealed, oldest first, checked against the schema. */
  receipts(): Promise<TraceRecord[]>
  close(): Promise<void>
}

/** A router on a real store and the real pool, in this process. */
export async function testRouter(options: RouterOptions): Promise<TestRouter> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-router-'))
  const db = await openDb(join(folder, 'router.db'), { synchronous: 'normal' })
  const router = createRouter({ transport: undiciTransport({ connectMs: 1000 }), ...options, db })
  await router.ready()
  const receipts = async () => {
    const { rows } = await db.execute('select body from traces order by tenant_id, seq')
    return rows.map(row => traceRecord.parse(JSON.parse(String(row.body))))
  }
  let closed = false
  return {
    router,
    db,
    post(path, body, headers = {}, signal) {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const init = { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } }
      return router.fetch(new Request(`http://router${path}`, { ...init, ...(signal && { signal }) }))
    },
    async receipts() {
      if (!closed) {
        closed = true
        await router.close()
      }
      return receipts()
    },
    async close() {
      if (!closed) await router.close()
      closed = true
      db.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** An upstream for each test of a file; what `begin` gives closes the router that the test has started. */
export function upstreamPerTest(begin: (upstream: ScriptedUpstream) => () => Promise<void> | undefined): void {
  let ends: (() => Promise<void> | undefined)[] = []
  beforeEach(async () => {
    const upstream = await scriptedUpstream()
    ends = [begin(upstream), () => upstream.close()]
  })
  afterEach(async () => {
    for (const end of ends) await end()
  })
}
