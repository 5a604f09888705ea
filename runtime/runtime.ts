import { type Log, silentLog } from '../shared/log/log.ts'
import { createMetrics } from '../shared/metrics/metrics.ts'
import type { Db } from '../shared/sql/db.ts'
import { migrate } from '../shared/sql/migrate.ts'
import { type Clock, systemClock } from '../shared/time/clock.ts'
import { VERSION } from '../shared/version.ts'
import type { Readyz } from '../shared/wire/runtime/health.ts'
import { runtimeApp } from './app.ts'
import type { MetricsAccess } from './metrics/access.ts'
import { runtimeSteps } from './schema/steps.ts'

export interface RuntimeOptions {
  /** The control plane's store. The caller opens it and closes it. */
  db: Db
  log?: Log
  clock?: Clock
  maxBodyBytes?: number
  /** Default open: a program that mounts the runtime decides who reaches it. */
  metricsAccess?: MetricsAccess
}

export interface Runtime {
  fetch(request: Request): Promise<Response>
  /** Brings the store up to date; rejects with a sentence when that cannot be done. */
  ready(): Promise<void>
  /** From now on /readyz says that the service is leaving. */
  drain(): void
  close(): Promise<void>
}

const DEFAULT_BODY_BYTES = 1_048_576

export function createRuntime(options: RuntimeOptions): Runtime {
  const { db, log = silentLog(), clock = systemClock, metricsAccess = { open: true } } = options
  const metrics = createMetrics()
  metrics.gauge('waybill_build_info', 'The running version.').set(1, { version: VERSION })
  let started: Promise<unknown> | undefined
  let phase: Readyz['status'] = 'starting'

  async function ready(): Promise<void> {
    started ??= migrate(db, 'runtime', runtimeSteps).then(() => {
      if (phase === 'starting') phase = 'ready'
    })
    await started
  }

  async function readiness(): Promise<Readyz> {
    const migrations = await outcome(ready)
    const database = await outcome(() => db.execute('select 1'))
    const status = database !== 'ok' || migrations !== 'ok' ? 'failing' : phase
    return { status, checks: { database, migrations } }
  }

  const app = runtimeApp({
    log: log.target('runtime.http'),
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_BODY_BYTES,
    monotonic: clock.monotonic,
    metrics,
    access: metricsAccess,
    requestSeconds: metrics.histogram('waybill_http_request_duration_seconds', 'Time from request to answer.'),
    readiness,
  })

  return {
    fetch: async request => app.fetch(request),
    ready,
    drain() {
      phase = 'draining'
    },
    async close() {
      phase = 'draining'
      await started?.catch(() => undefined)
    },
  }
}

/** `ok`, or what went wrong in one sentence. */
async function outcome(check: () => Promise<unknown>): Promise<string> {
  try {
    await check()
    return 'ok'
  } catch (error) {
    return error instanceof Error ? error.message : 'failed'
  }
}
