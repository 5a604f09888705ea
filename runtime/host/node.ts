import { readEnv } from '../../shared/env/read-env.ts'
import { listen, type Service } from '../../shared/host/serve.ts'
import { isLoopback } from '../../shared/http/bind.ts'
import { createLog } from '../../shared/log/log.ts'
import { runtimeEnv } from '../env.ts'
import { createRuntime } from '../runtime.ts'
import { openStore } from './open.ts'

/** The runtime on Node: environment and files in, a listening socket out. */
export async function serveRuntime(vars: Record<string, string | undefined>): Promise<Service> {
  const env = readEnv(runtimeEnv, vars)
  const log = createLog({ filter: env.PLATFORM_LOG_LEVEL, write: line => process.stderr.write(line + '\n') })
  for (const secret of [env.PLATFORM_DATABASE_TOKEN, env.PLATFORM_METRICS_TOKEN]) log.redact.register(secret)
  const db = await openStore(env)
  const open = isLoopback(env.PLATFORM_BIND.host)
  const runtime = createRuntime({
    db,
    log,
    maxBodyBytes: env.PLATFORM_MAX_BODY_BYTES,
    metricsAccess: open ? { open } : { open, token: env.PLATFORM_METRICS_TOKEN },
  })
  await runtime.ready()
  const server = await listen({ bind: env.PLATFORM_BIND, fetch: runtime.fetch, bodyMs: 30_000 })
  return {
    origin: server.origin,
    async close() {
      runtime.drain()
      await server.close(env.PLATFORM_DRAIN_TIMEOUT)
      await runtime.close()
      db.close()
    },
  }
}
