import type { Db } from '../shared/sql/db.ts'
import type { FeedbackRequest, FeedbackResult } from '../shared/wire/router/feedback.ts'
import type { ReloadResult, RouterHealth, RouterReadiness } from '../shared/wire/router/health.ts'
import type { ConfigSource } from './active-config.ts'
import { assemble, type Parts } from './assemble.ts'
import type { RouterOptions } from './options.ts'
import { fetchCalls } from './proxy/fetch-exchange.ts'
import type { HandleCall } from './proxy/handle-call.ts'

export type { RouterOptions }

export interface Router {
  fetch(request: Request): Promise<Response>
  /** Opens store and config; rejects with a sentence when that cannot be done. */
  ready(): Promise<void>
  /**
   * Takes a new routing config, by default from where the first one came; throws ConfigError and keeps the old one when it
   * cannot be used.
   */
  reload(source?: ConfigSource): Promise<ReloadResult>
  /**
   * Reports how an earlier answer turned out, as `POST /v1/feedback` does; resolves when it is kept. With a tenant, only its
   * traces are known.
   */
  feedback(report: FeedbackRequest, tenant?: string): Promise<FeedbackResult>
  /** From now on /healthz answers 503, so that a balancer sends no more calls. */
  drain(): void
  /** Resolves when what has ended by now is kept, for hosts where nothing runs between requests. */
  settled(): Promise<void>
  /** Writes what is still to be kept. */
  close(): Promise<void>
  /** Takes calls to providers from a host that has objects of its own for them; ask for it after `ready`. */
  handleCall(): HandleCall
}

/** The parts with the one entry for every request. */
type Serving = Parts & { serve: (request: Request) => Response | Promise<Response> }

export function createRouter(options: RouterOptions = {}): Router {
  let phase: RouterHealth['status'] = 'starting'
  const parts = { current: undefined as Serving | undefined }
  let starting: Promise<Serving> | undefined

  async function start(): Promise<Serving> {
    const made = await assemble(options, { phase: () => phase, readiness })
    const call = fetchCalls(made.handleCall, options.cut)
    const built = { ...made, serve: (request: Request) => call(request) ?? made.app.fetch(request) }
    parts.current = built
    if (phase === 'starting') phase = 'ok'
    return built
  }
  const started = () => (starting ??= start())

  async function readiness(): Promise<RouterReadiness> {
    const { receipts } = await started()
    const store = options.db === undefined ? undefined : await reachable(options.db)
    const status = await receipts?.status()
    const checks = {
      config: 'ok',
      ...(store !== undefined && { store }),
      ...(status && {
        writer: status.broken.length > 0 ? 'a chain in the store is broken: run `router verify`' : status.writer,
      }),
      ...(status && options.receiptStorage?.spill && { spill: status.spill }),
    }
    const ready = phase === 'ok' && Object.values(checks).every(check => check === 'ok')
    return { status: ready ? 'ready' : 'not_ready', checks }
  }

  return {
    fetch: async request => (parts.current ?? (await started())).serve(request),
    async ready() {
      await started()
    },
    async reload(source) {
      return (await started()).reload(source)
    },
    async feedback(report, tenant) {
      const { feedback } = await started()
      if (feedback) return feedback.submit(report, tenant)
      throw new Error('this router keeps no traces, so there is nothing to report on: give it a store')
    },
    drain() {
      phase = 'draining'
      parts.current?.drain()
    },
    async settled() {
      await (await started()).settled()
    },
    async close() {
      phase = 'draining'
      await (await starting?.catch(() => undefined))?.close()
    },
    handleCall() {
      if (!parts.current) throw new Error('the router is not ready')
      return parts.current.handleCall
    },
  }
}

async function reachable(db: Db): Promise<string> {
  return db
    .execute('select 1')
    .then(() => db.writable())
    .then(() => 'ok')
    .catch((error: unknown) => (error instanceof Error ? error.message : 'failed'))
}
