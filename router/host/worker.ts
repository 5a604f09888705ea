import { createClient } from '@libsql/client/web'
import { readEnv } from '../../shared/env/read-env.ts'
import { createLog } from '../../shared/log/log.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { prepareDb } from '../../shared/sql/db.ts'
import { parseKeys } from '../auth/keys.ts'
import { routerEnv } from '../env.ts'
import { createRouter, type Router } from '../router.ts'

type Vars = Record<string, string | undefined>

let router: Promise<Router> | undefined

/** The router on a WinterCG host. Its store is a libSQL server; without ROUTER_DB nothing is kept. */
export default {
  async fetch(request: Request, vars: Vars): Promise<Response> {
    router ??= start(vars)
    try {
      return (await router).fetch(request)
    } catch (error) {
      router = undefined
      throw error
    }
  },
}

async function start(vars: Vars): Promise<Router> {
  const env = readEnv(routerEnv, vars)
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: line => console.error(line) })
  const common = {
    ...{ log, env: vars, tenantId: env.ROUTER_TENANT, responseHeaders: env.ROUTER_RESPONSE_HEADERS },
    access: {
      keys: env.ROUTER_KEYS === undefined ? [] : parseKeys(env.ROUTER_KEYS, sha256),
      reach: 'network',
      insecure: env.ROUTER_INSECURE,
      metricsOpen: env.ROUTER_METRICS_OPEN,
    },
  } as const
  if (!vars.ROUTER_DB) return createRouter(common)
  const client = createClient({ url: env.ROUTER_DB, ...(env.ROUTER_DB_TOKEN && { authToken: env.ROUTER_DB_TOKEN }) })
  const made = createRouter({ ...common, db: await prepareDb(client, { kind: 'remote' }) })
  await made.ready()
  return made
}
