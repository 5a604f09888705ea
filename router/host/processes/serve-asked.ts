import { availableParallelism } from 'node:os'
import { EnvError, readEnv } from '../../../shared/env/read-env.ts'
import type { Service } from '../../../shared/host/serve.ts'
import { routerEnv } from '../../env.ts'

type Vars = Record<string, string | undefined>

/** The router in as many processes as the environment asks for. */
export async function serveAsked(vars: Vars): Promise<Service> {
  const env = readEnv(routerEnv, vars)
  const cores = availableParallelism()
  // One process uses two cores by itself: its receipts are written beside its calls.
  const count = env.ROUTER_PROCESSES === 'auto' ? (cores > 2 ? cores : 1) : Number(env.ROUTER_PROCESSES)
  if (count === 1) return (await import('../node.ts')).serveRouter(vars)
  if (process.platform === 'win32')
    throw new EnvError('ROUTER_PROCESSES: several processes need Linux, macOS or BSD: leave it unset on Windows.')
  if (/^(?:file:)?:memory:/i.test(env.ROUTER_DB))
    throw new EnvError('ROUTER_PROCESSES: several processes need a store that they share: name a file in ROUTER_DB.')
  if (env.ROUTER_DIRECTORY_URL !== undefined)
    throw new EnvError(
      'ROUTER_PROCESSES: over shards a router is one process: leave it unset, and start further routers behind a balancer.',
    )
  const { serveProcesses } = await import('./supervise.ts')
  const service = await serveProcesses(vars, count)
  const onReplace = () => void service.restart()
  process.on('SIGUSR2', onReplace)
  process.on('SIGHUP', service.reload)
  return {
    origin: service.origin,
    async close() {
      process.off('SIGUSR2', onReplace)
      process.off('SIGHUP', service.reload)
      await service.close()
    },
  }
}
