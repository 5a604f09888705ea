import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { serveRouter } from '../router/host/node.ts'
import { createRouter } from '../router/router.ts'
import { serveRuntime } from '../runtime/host/node.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { openDb } from '../shared/host/open-libsql.ts'
import type { Service } from '../shared/host/serve.ts'
import { type ServiceName, startWorker } from '../wrangler-local/workers.ts'
import { sqldAvailable, startSqld } from './backends/sqld.ts'

/** Sends one request to the service under test; `path` starts with a slash. */
export type Call = (path: string, init?: RequestInit) => Promise<Response>

/** Sends the head of a POST that announces a body of `bytes` bytes, and never the body. */
export type Announce = (path: string, bytes: number) => Promise<{ status: number; body: unknown }>

interface Running {
  call: Call
  announce: Announce
  stop(): Promise<void>
}

/** Nothing listens there: a path that is forwarded is answered at once, and no test reaches a provider. */
const NO_UPSTREAM = { ROUTER_UPSTREAM_MESSAGES: 'http://127.0.0.1:9', ROUTER_UPSTREAM_CHAT: 'http://127.0.0.1:9' }

const HOSTS = {
  'in-process': inProcess,
  'a Node socket': onNode,
  workerd: inWorkerd,
} satisfies Record<string, (service: ServiceName) => Promise<Running>>

export type HostName = keyof typeof HOSTS
export const hostNames = Object.keys(HOSTS) as HostName[]

const hasSqld = await sqldAvailable()

/** The same tests on every host that the service runs on. */
export function matrix(service: ServiceName, tests: (call: Call, announce: Announce, host: HostName) => void): void {
  for (const host of hostNames) {
    describe.skipIf(host === 'workerd' && !hasSqld)(`${service} on ${host}`, () => {
      let running: Running
      beforeAll(async () => {
        running = await HOSTS[host](service)
      })
      afterAll(() => running?.stop())
      tests(
        (path, init) => running.call(path, init),
        (path, bytes) => running.announce(path, bytes),
        host,
      )
    })
  }
}

async function inProcess(service: ServiceName): Promise<Running> {
  const db = await openDb(':memory:')
  const app =
    service === 'runtime'
      ? createRuntime({
          db,
          bootstrapKey: RUNTIME_KEY,
          masterKey: new Uint8Array(32).fill(7),
          corsOrigins: [PAGE_ORIGIN],
        })
      : createRouter({ db, env: NO_UPSTREAM })
  await app.ready()
  return {
    call: (path, init) => app.fetch(new Request(`http://local${path}`, init)),
    async announce(path, bytes) {
      const headers = { 'content-length': String(bytes) }
      const answer = await app.fetch(new Request(`http://local${path}`, { method: 'POST', headers }))
      return { status: answer.status, body: await answer.json() }
    },
    async stop() {
      await app.close()
      db.close()
    },
  }
}

/** Writes the head by hand, as no client library will announce what it does not send. */
function announceTo(origin: string): Announce {
  return async (path, bytes) => {
    const sent = request(origin + path, { method: 'POST', headers: { 'content-length': bytes } })
    sent.on('error', () => undefined)
    sent.flushHeaders()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    const body: unknown = JSON.parse((await answer.toArray()).join(''))
    sent.destroy()
    return { status: answer.statusCode ?? 0, body }
  }
}

async function onNode(service: ServiceName): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-matrix-'))
  const started: Service =
    service === 'runtime'
      ? await serveRuntime({
          PLATFORM_BIND: '127.0.0.1:0',
          PLATFORM_DATA_DIR: folder,
          PLATFORM_LOG_LEVEL: 'off',
          PLATFORM_BOOTSTRAP_KEY: RUNTIME_KEY,
          PLATFORM_CORS_ORIGINS: PAGE_ORIGIN,
        })
      : await serveRouter({
          ROUTER_BIND: '127.0.0.1:0',
          ROUTER_DB: join(folder, 'router.db'),
          RUST_LOG: 'off',
          ...NO_UPSTREAM,
        })
  return {
    call: (path, init) => fetch(started.origin + path, init),
    announce: announceTo(started.origin),
    async stop() {
      await started.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function inWorkerd(service: ServiceName): Promise<Running> {
  const sqld = await startSqld()
  const url = sqld.primaryUrl
  const vars: Record<string, string> =
    service === 'runtime'
      ? {
          PLATFORM_DATABASE_URL: url,
          PLATFORM_METRICS_TOKEN: METRICS_TOKEN,
          PLATFORM_LOG_LEVEL: 'off',
          PLATFORM_BOOTSTRAP_KEY: RUNTIME_KEY,
          PLATFORM_CORS_ORIGINS: PAGE_ORIGIN,
          PLATFORM_MASTER_KEY: btoa('k'.repeat(32)),
        }
      : { ROUTER_DB: url, RUST_LOG: 'off', ROUTER_METRICS_OPEN: '1', ...NO_UPSTREAM }
  const worker = await startWorker(service, { vars }).catch(async (error: unknown) => {
    await sqld.stop()
    throw error
  })
  return {
    call: (path, init) => fetch(new URL(path, worker.url), init),
    announce: announceTo(worker.url.origin),
    async stop() {
      await worker.close()
      await sqld.stop()
    },
  }
}

/** A key with every scope, on each host of the runtime. */
export const RUNTIME_KEY = `wb_live_${'m'.repeat(43)}`

/** An origin whose pages may call the runtime from a browser. */
export const PAGE_ORIGIN = 'https://app.example.com'

/** A worker has no loopback address, so its metrics ask for this token; the other hosts ignore it. */
export const METRICS_TOKEN = 'metrics-token-of-the-matrix'
