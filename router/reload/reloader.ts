import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { ReloadResult } from '../../shared/wire/router/health.ts'
import { type ActiveConfig, ConfigError, type ConfigSource, type configHolder } from '../active-config.ts'
import { restartRequired } from './restart-required.ts'

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
  const reloads = metrics.counter('router_config_reloads_total', 'Reloads of the routing config.')
  for (const result of ['ok', 'error']) reloads.add(0, { result })

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
