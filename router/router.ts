import { uuidv7 } from '../shared/ids/uuid-v7.ts'
import { type Log, silentLog } from '../shared/log/log.ts'
import { createMetrics } from '../shared/metrics/metrics.ts'
import type { Db } from '../shared/sql/db.ts'
import { migrate } from '../shared/sql/migrate.ts'
import { type Clock, systemClock } from '../shared/time/clock.ts'
import { VERSION } from '../shared/version.ts'
import type { RouterHealth, RouterReadiness } from '../shared/wire/router/health.ts'
import { routerApp } from './app.ts'
import type { ObserveDeps } from './observe/route.ts'
import { routerSteps } from './schema/steps.ts'
import { fetchTransport } from './upstream/fetch-transport.ts'
import type { Transport } from './upstream/transport.ts'

export interface RouterOptions {
  /** The trace store; without one nothing is kept. The caller opens it and closes it. */
  db?: Db
  log?: Log
  clock?: Clock
  transport?: Transport
  /** Base addresses of the two providers; default their public ones. */
  upstreams?: { messages?: string; chat?: string }
  tenantId?: string
  /** Whether answers carry `x-router-*` headers; default yes. */
  responseHeaders?: boolean
  maxBodyBytes?: number
}

export interface Router {
  fetch(request: Request): Promise<Response>
  /** Brings the store up to date; rejects with a sentence when that cannot be done. */
  ready(): Promise<void>
  /** From now on /healthz answers 503, so that a balancer sends no more calls. */
  drain(): void
  close(): Promise<void>
  /** What a host needs to pass calls through by its own means. */
  readonly observe: ObserveDeps
}

const MAX_BODY_BYTES = 33_554_432
const TIMEOUTS = { connectMs: 10_000, firstByteMs: 120_000, idleMs: 120_000 }

export function createRouter(options: RouterOptions = {}): Router {
  const { db, log = silentLog(), clock = systemClock, transport = fetchTransport() } = options
  const metrics = createMetrics()
  metrics.gauge('router_build_info', 'The running version.').set(1, { version: VERSION })
  let started: Promise<unknown> | undefined
  let phase: RouterHealth['status'] = db === undefined ? 'ok' : 'starting'

  async function ready(): Promise<void> {
    if (db === undefined) return
    started ??= migrate(db, 'router', routerSteps).then(() => {
      if (phase === 'starting') phase = 'ok'
    })
    await started
  }

  async function readiness(): Promise<RouterReadiness> {
    if (db === undefined) return { status: phase === 'ok' ? 'ready' : 'not_ready', checks: { config: 'ok' } }
    const store = await ready()
      .then(() => db.execute('select 1'))
      .then(() => 'ok')
      .catch((error: unknown) => (error instanceof Error ? error.message : 'failed'))
    return { status: store === 'ok' && phase === 'ok' ? 'ready' : 'not_ready', checks: { config: 'ok', store } }
  }

  const observe: ObserveDeps = {
    transport,
    bases: {
      messages: options.upstreams?.messages ?? 'https://api.anthropic.com',
      chat: options.upstreams?.chat ?? 'https://api.openai.com',
    },
    timeouts: TIMEOUTS,
    clock,
    newId: uuidv7,
    recorded: undefined,
    maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
    tenantId: options.tenantId ?? 'default',
    outHeaders: options.responseHeaders ?? true,
  }
  const app = routerApp({ log: log.target('router.http'), metrics, observe, phase: () => phase, readiness })

  return {
    fetch: async request => app.fetch(request),
    ready,
    drain() {
      phase = 'draining'
    },
    async close() {
      phase = 'draining'
      await started?.catch(() => undefined)
      await transport.close()
    },
    observe,
  }
}
