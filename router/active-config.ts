import type { Log } from '../shared/log/log.ts'
import type { BuiltinPrices } from '../shared/prices/builtin.ts'
import { type LoadOptions, loadConfig } from './config/load-config.ts'
import { formatProblem } from './config/problem.ts'
import type { RoutingConfig, Rung } from './config/routing-config.ts'
import { buildGates } from './gates/build-gates.ts'
import type { Gate } from './gates/gate.ts'
import type { GateHost } from './gates/gate-host.ts'
import { costBound } from './policy/cost-bound.ts'
import { namesInstead } from './receipt/request-part.ts'

/** The routing config cannot be used: one line for each thing that is wrong. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

export interface ActiveConfig {
  config: RoutingConfig
  gates: ReadonlyMap<string, Gate>
}

export type ConfigSource = string | object

/** Reads a config and makes its gates; throws ConfigError with every problem found. */
export function activate(
  source: ConfigSource,
  options: LoadOptions & { gateHost: GateHost; builtinPrices: BuiltinPrices },
): ActiveConfig {
  const loaded = loadConfig(source, options)
  if (!loaded.ok) throw new ConfigError(loaded.problems.map(formatProblem).join('\n'))
  const { config } = loaded
  const { gates, problems } = buildGates(Object.values(config.gates), options.gateHost)
  // An unused gate may be one that this host cannot run.
  const used = new Set(config.routes.flatMap(route => route.gates))
  const blocking = problems.filter(problem => used.has(problem.gateId))
  const missing = blocking.map(({ message }) => message)
  if (missing.length > 0) throw new ConfigError(missing.join('\n'))
  return { config, gates }
}

/** True when a request could be routed at all: otherwise bodies are never looked at on their way. */
export function mayRoute({ config }: ActiveConfig): boolean {
  return config.routes.length > 0
}

/** The config in use, swapped whole; requests in flight keep the one they began with. */
export function configHolder(first: ActiveConfig, log: Log) {
  let active = first
  const warn = ({ config }: ActiveConfig) => {
    for (const warning of configWarnings(config)) log.warn(warning)
  }
  warn(first)
  return {
    get: () => active,
    swap(next: ActiveConfig): { config_hash: string; changed: boolean } {
      const { configHash, priceTableHash } = active.config
      const changed = next.config.configHash !== configHash || next.config.priceTableHash !== priceTableHash
      active = next
      warn(next)
      log.info('routing config in use', { config_hash: next.config.configHash, changed })
      return { config_hash: next.config.configHash, changed }
    },
  }
}

/** A call as agents make them, to compare what models cost by. */
const USUAL = { input: 10_000, output: 1000 }

/** What a config may say, and hardly means. */
export function configWarnings({ routes }: Pick<RoutingConfig, 'routes'>): string[] {
  return routes.flatMap(({ ix, ladder, match }) => {
    const warnings: string[] = []
    for (const agent of match.agent ?? []) {
      const names = namesInstead(agent)
      if (names === undefined) continue
      warnings.push(
        `[[route]] #${ix + 1}: ${agent} does not name itself, so agent = "${agent}" matches only calls with the header ` +
          `x-router-agent: ${agent}; its own calls come as ${names.join(' or ')}`,
      )
    }
    ladder.forEach((rung, i) => {
      const above = ladder[i + 1]
      if (above === undefined || !isDearer(rung, above)) return
      warnings.push(
        `[[route]] #${ix + 1}: its ladder asks ${rung.model} before ${above.model}, which is cheaper: a ladder goes from the cheapest ` +
          'model to the dearest, and this one costs more than its top rung alone would',
      )
    })
    return warnings
  })
}

function isDearer(a: Rung, b: Rung): boolean {
  return a.price !== null && b.price !== null && costBound(a.price, USUAL, 'none') > costBound(b.price, USUAL, 'none')
}
