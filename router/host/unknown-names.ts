import { unreadNames } from '../../shared/env/read-env.ts'
import { routerEnv } from '../env.ts'

/** Read on other hosts, refused in words, or set by the router for the programs that it starts. */
const OTHERS = ['ROUTER_CONFIG_TEXT', 'ROUTER_DB_REPLICA_OF', 'ROUTER_GATE_ID']

/** What the environment sets for the router and nothing reads; a config may name variables of its own. */
export function unknownNames(vars: Readonly<Record<string, string | undefined>>, config = ''): string[] {
  const ofConfig: string[] = config.match(/\bROUTER_[A-Z0-9_]+/g) ?? []
  const own = Object.fromEntries(Object.entries(vars).filter(([name]) => !ofConfig.includes(name)))
  return unreadNames(own, { prefix: 'ROUTER_', known: new Set([...Object.keys(routerEnv.shape), ...OTHERS]) })
}
