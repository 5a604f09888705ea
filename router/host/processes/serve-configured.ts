import { availableParallelism } from 'node:os'
import { EnvError, readEnv } from '../../../shared/env/read-env.ts'
import { processCount, replacedOnSignal } from '../../../shared/host/processes/process-group.ts'
import type { Service } from '../../../shared/host/serve.ts'
import { routerEnv } from '../../env.ts'

type Vars = Record<string, string | undefined>

/** The router in as many processes as the environment asks for. */
export async function serveConfigured(vars: Vars): Promise<Service> {
  const env = readEnv(routerEnv, vars)
  const cores = availableParallelism()
  // One process uses two cores by itself: its receipts are written beside its calls.
  const count = processCount('ROUTER_PROCESSES', env.ROUTER_PROCESSES, () => (cores > 2 ? cores : 1))
  if (count === 1) return (await import('../node.ts')).serveRouter(vars)
  if (/^(?:file:)?:memory:/i.test(env.ROUTER_DB))
    throw new EnvError('ROUTER_PROCESSES: several processes need a store that they share: name a file in ROUTER_DB.')
  if (env.ROUTER_DIRECTORY_URL !== undefined)
    throw new EnvError(
      'ROUTER_PROCESSES: over shards a router is one process: leave it unset, and start further routers behind a balancer.',
    )
  const { serveProcesses } = await import('./supervise.ts')
  return replacedOnSignal(await serveProcesses(vars, count))
}
