import { Miniflare } from 'miniflare'
import { rolldown } from 'rolldown'

export type ServiceName = 'runtime' | 'router'

export interface Worker {
  url: URL
  /** What a cron trigger does; resolves when the handler has. */
  scheduled(): Promise<void>
  close(): Promise<void>
}

const ENTRY: Record<ServiceName, string> = {
  runtime: new URL('../runtime/host/worker.ts', import.meta.url).pathname,
  router: new URL('../router/host/worker.ts', import.meta.url).pathname,
}

const bundles = new Map<ServiceName, Promise<string>>()

/** Made once for a process, since one takes half a second. */
function bundled(name: ServiceName): Promise<string> {
  const known = bundles.get(name) ?? bundleWorker(ENTRY[name])
  bundles.set(name, known)
  return known
}

export interface WorkerOptions {
  vars: Record<string, string>
  /** Port on 127.0.0.1; omitted, a free one. */
  port?: number
}

/** Runs one service in workerd, as an edge host would. */
export async function startWorker(name: ServiceName, { vars, port = 0 }: WorkerOptions): Promise<Worker> {
  const miniflare = new Miniflare({
    name,
    modules: true,
    script: await bundled(name),
    compatibilityDate: '2026-07-01',
    // Without it a request does not learn that its client has left, and the provider's call goes on.
    compatibilityFlags: ['enable_request_signal'],
    bindings: vars,
    // What a cron trigger would call stands under a path of its own.
    unsafeTriggerHandlers: true,
    host: '127.0.0.1',
    port,
  })
  const url = await miniflare.ready
  return {
    url,
    async scheduled() {
      const answer = await fetch(new URL('/cdn-cgi/handler/scheduled', url))
      const outcome = await answer.text()
      if (outcome !== 'ok') throw new Error(`the scheduled handler of ${name} ended with ${outcome}`)
    },
    close: () => miniflare.dispose(),
  }
}

/** One file of plain JavaScript for a WinterCG host: no Node built-in may be left in it. */
async function bundleWorker(entry: string): Promise<string> {
  const bundle = await rolldown({
    input: entry,
    platform: 'browser',
    onLog(level, log, next) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message)
      next(level, log)
    },
  })
  try {
    const { output } = await bundle.generate({ format: 'es', codeSplitting: false })
    return output[0].code
  } finally {
    await bundle.close()
  }
}
