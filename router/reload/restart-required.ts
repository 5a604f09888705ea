import type { RoutingConfig, StoreSettings } from '../config/routing-config.ts'

/** What the writer of this process was built with. */
const OF_WRITER = {
  queue: 'store.queue',
  batch: 'store.batch',
  flushMs: 'store.flush_ms',
  checkpointRecords: 'store.checkpoint_records',
  checkpointSeconds: 'store.checkpoint_seconds',
  retentionDays: 'store.retention_days',
} as const satisfies Partial<Record<keyof StoreSettings, string>>

type Settings = Pick<RoutingConfig, 'store' | 'limits'>

/** The keys of a new config that take effect only at a restart, as they are spelled in the file. */
export function restartRequired(running: Settings, next: Settings): string[] {
  const keys: string[] = []
  for (const [key, name] of Object.entries(OF_WRITER) as [keyof typeof OF_WRITER, string][]) {
    if (running.store[key] !== next.store[key]) keys.push(name)
  }
  if (running.limits.maxBodyBytes !== next.limits.maxBodyBytes) keys.push('limits.max_body_bytes')
  return keys
}
