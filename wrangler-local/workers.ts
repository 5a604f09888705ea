import { Miniflare } from 'miniflare'
import { bundleWorker } from './bundle.ts'

export type ServiceName = 'runtime' | 'router'

export interface Worker {
  url: URL
  close(): Promise<void>
}

const ENTRY: Record<ServiceName, string> = {
  runtime: new URL('../runtime/host/worker.ts', import.meta.url).pathname,
  router: new URL('../router/host/worker.ts', import.meta.url).pathname,
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
    script: await bundleWorker(ENTRY[name]),
    compatibilityDate: '2026-07-01',
    bindings: vars,
    host: '127.0.0.1',
    port,
  })
  const url = await miniflare.ready
  return { url, close: () => miniflare.dispose() }
}
