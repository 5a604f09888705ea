import { loadConfig } from '../../config/load-config.ts'
import { formatProblem } from '../../config/problem.ts'
import type { Route, RoutingConfig } from '../../config/routing-config.ts'

/** A config from TOML, with unpriced models allowed. */
export function configOf(text: string): RoutingConfig {
  const result = loadConfig(`pricing = { unpriced = "null" }\n${text}`, { hostHasProcesses: false })
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'))
  return result.config
}

/** A route with a ladder of so many rungs, providers in turn, and further keys. */
export function routeOf(rungs: number, keys = ''): Route {
  const ladder = Array.from({ length: rungs }, (_, i) => `"${i % 2 === 0 ? 'anthropic' : 'openai'}/m${i}"`)
  return configOf(`[[route]]\nmode = "enforce"\nladder = [${ladder.join(', ')}]\n${keys}`).routes[0]!
}
