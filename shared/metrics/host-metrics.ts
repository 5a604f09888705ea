import type { Metrics } from './metrics.ts'

/** What a host knows of its process. */
export interface HostFacts {
  /** When it started, in milliseconds since 1970. */
  startedMs: number
  residentBytes(): number
  /** Room on the disk that it writes to; undefined where it writes to none. */
  freeBytes: (() => Promise<number>) | undefined
}

/** Gauges of the process, under the names that Prometheus has for them. What they read is looked up when the page is asked for. */
export function hostMetrics(metrics: Metrics, prefix: string, facts: HostFacts): () => Promise<void> {
  metrics
    .gauge('process_start_time_seconds', 'When the process started, in seconds since 1970.')
    .set(facts.startedMs / 1000)
  metrics.gauge('process_resident_memory_bytes', 'Memory that the process holds.').read(facts.residentBytes)
  const { freeBytes } = facts
  const free = freeBytes && metrics.gauge(`${prefix}_disk_free_bytes`, 'Room on the disk that the service writes to.')
  return async () => free?.set((await freeBytes?.().catch(() => undefined)) ?? Number.NaN)
}
