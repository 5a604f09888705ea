import { readEnv } from '../../shared/env/read-env.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { listen, type Service } from '../../shared/host/serve.ts'
import { createLog } from '../../shared/log/log.ts'
import { routerEnv } from '../env.ts'
import { createRouter } from '../router.ts'
import { directRelay } from './direct-relay.ts'
import { undiciTransport } from './undici-transport.ts'

const HEADER_BYTES = 65_536

/** The router on Node: environment and files in, a listening socket out. */
export async function serveRouter(vars: Record<string, string | undefined>): Promise<Service> {
  const env = readEnv(routerEnv, vars)
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: line => process.stderr.write(line + '\n') })
  log.redact.register(env.ROUTER_DB_TOKEN)
  const db = await openDb(env.ROUTER_DB, { ...(env.ROUTER_DB_TOKEN && { token: env.ROUTER_DB_TOKEN }) })
  const transport = undiciTransport({ connectMs: 10_000 })
  const router = createRouter({
    db,
    log,
    transport,
    upstreams: { messages: env.ROUTER_UPSTREAM_MESSAGES, chat: env.ROUTER_UPSTREAM_CHAT },
    tenantId: env.ROUTER_TENANT,
    responseHeaders: env.ROUTER_RESPONSE_HEADERS,
  })
  await router.ready()
  const server = await listen({
    bind: env.ROUTER_BIND,
    fetch: router.fetch,
    direct: directRelay({ ...router.observe, agent: transport.agent }),
    bodyMs: 60_000,
    maxHeaderBytes: HEADER_BYTES,
  })
  return {
    origin: server.origin,
    async close() {
      router.drain()
      await server.close(env.ROUTER_DRAIN_SECONDS * 1000)
      await router.close()
      db.close()
    },
  }
}
