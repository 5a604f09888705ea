import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { ReloadResult } from '../../shared/wire/router/health.ts'
import { type ActiveConfig, ConfigError, type ConfigSource, type configHolder } from '../active-config.ts'
import type { RoutingConfig, StoreSettings } from '../config/routing-config.ts'

export interface ReloaderDeps {
  holder: ReturnType<typeof configHolder>
  activate: (source: ConfigSource) => Promise<ActiveConfig>
  /** Reads the config from where it came; undefined where it was handed in. */
  readConfig: (() => Promise<ConfigSource>) | undefined
  metrics: Metrics
  log: Log
}

/** Swaps the routing config whole, or not at all: what is wrong with the new one is thrown, logged and counted. */
export function reloader({ holder, activate, readConfig, metrics, log }: ReloaderDeps) {
  const started = holder.get().config
  const reloads = metrics.counter('router_config_reloads_total', 'Reloads of the routing config.', [
    { result: 'ok' },
    { result: 'error' },
  ])

  async function readAgain(): Promise<ConfigSource> {
    if (readConfig) return readConfig()
    throw new ConfigError('there is no routing config to read again: start the router with ROUTER_CONFIG or --config')
  }

  return async (source?: ConfigSource): Promise<ReloadResult> => {
    try {
      const next = await activate(source ?? (await readAgain()))
      const swapped = holder.swap(next)
      reloads.add(1, { result: 'ok' })
      return { ...swapped, restart_required: restartRequired(started, next.config) }
    } catch (error) {
      reloads.add(1, { result: 'error' })
      log.error('the routing config was not reloaded, the old one stays', { error })
      throw error
    }
  }
}

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
function restartRequired(running: Settings, next: Settings): string[] {
  const keys: string[] = []
  for (const [key, name] of Object.entries(OF_WRITER) as [keyof typeof OF_WRITER, string][]) {
    if (running.store[key] !== next.store[key]) keys.push(name)
  }
  if (running.limits.maxBodyBytes !== next.limits.maxBodyBytes) keys.push('limits.max_body_bytes')
  return keys
}
