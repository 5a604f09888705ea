import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { afterBody } from '../../shared/http/after-body.ts'
import { createLog } from '../../shared/log/log.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { prepareDb } from '../../shared/sql/db.ts'
import { eventClient } from '../../shared/sql/hrana/event-client.ts'
import { fetchTransport } from '../../shared/sql/hrana/fetch-transport.ts'
import { serverAddress } from '../../shared/sql/hrana/server-address.ts'
import { parseKeys } from '../auth/keys.ts'
import { routerEnv } from '../env.ts'
import { createRouter, type Router } from '../router.ts'

type Vars = Record<string, string | undefined>

/** What the platform lends to one event. */
interface Event {
  waitUntil(work: Promise<unknown>): void
}

const NO_FILES = 'this host has no files; '
const SIGNED_ON_NODE = `${NO_FILES}checkpoints are signed by a router on Node, from the same store`

/** What no WinterCG host has: without a word, a setting would look like one that works. */
const OF_OTHER_HOSTS: Readonly<Record<string, string>> = {
  ROUTER_CONFIG: `${NO_FILES}put the text of the config into ROUTER_CONFIG_TEXT`,
  ROUTER_SIGNING_KEY: SIGNED_ON_NODE,
  ROUTER_SIGNING_KEY_FILE: SIGNED_ON_NODE,
  ROUTER_ANCHOR_FILE: SIGNED_ON_NODE,
  ROUTER_DB_REPLICA_OF: `${NO_FILES}give the address of the server itself as ROUTER_DB`,
  ROUTER_DIRECTORY_URL: 'this host serves one store: set ROUTER_DB, or serve shards on Node',
}

let router: Promise<Router> | undefined

/**
 * The router on a WinterCG host. Its store is a libSQL server; without ROUTER_DB nothing is kept. One router serves every request
 * of an isolate, for its breakers, sessions and chains; a request lasts until what it left to be written is, since timers and
 * connections end with the request that opened them.
 */
export default {
  async fetch(request: Request, vars: Vars, event: Event): Promise<Response> {
    const answering = answer(request, vars)
    // From the first moment: what this request starts or holds for all must not end with a client that leaves.
    event.waitUntil(answering.then(({ kept }) => kept).catch(() => undefined))
    return (await answering).response
  },
}

async function answer(request: Request, vars: Vars): Promise<{ response: Response; kept: Promise<void> }> {
  const served = await running(vars)
  const { response, taken } = afterBody(await served.fetch(request))
  return { response, kept: taken.then(() => served.settled()) }
}

/** One router of this isolate; a start that failed is tried again at the next call. */
async function running(vars: Vars): Promise<Router> {
  router ??= start(vars)
  try {
    return await router
  } catch (error) {
    router = undefined
    throw error
  }
}

async function start(vars: Vars): Promise<Router> {
  for (const [name, instead] of Object.entries(OF_OTHER_HOSTS)) {
    if (vars[name]) throw new EnvError(`${name}: ${instead}`)
  }
  const env = readEnv(routerEnv, vars)
  if (vars.ROUTER_DB && !/^(?:https?|libsql|wss?):/.test(vars.ROUTER_DB)) {
    throw new EnvError('ROUTER_DB: this host has no files; give the address of a libSQL server')
  }
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: line => console.error(line) })
  const common = {
    log,
    env: vars,
    tenantId: env.ROUTER_TENANT,
    responseHeaders: env.ROUTER_RESPONSE_HEADERS,
    ...(vars.ROUTER_CONFIG_TEXT && { config: vars.ROUTER_CONFIG_TEXT, configFile: 'ROUTER_CONFIG_TEXT' }),
    ...(env.ROUTER_PROMPT_SALT !== undefined && { promptSalt: env.ROUTER_PROMPT_SALT }),
    access: {
      keys: env.ROUTER_KEYS === undefined ? [] : parseKeys(env.ROUTER_KEYS, sha256),
      reach: 'network',
      insecure: env.ROUTER_INSECURE,
      metricsOpen: env.ROUTER_METRICS_OPEN,
      allowedOrigins: env.ROUTER_ALLOWED_ORIGINS,
    },
  } as const
  if (!vars.ROUTER_DB) return createRouter(common)
  const address = serverAddress(vars.ROUTER_DB, env.ROUTER_DB_TOKEN)
  const client = eventClient({ url: address.url, transport: fetchTransport(address) })
  const made = createRouter({
    ...common,
    db: await prepareDb(client, { kind: 'remote', writeTurns: true, writes: client.writes }),
    receiptStorage: { durable: env.ROUTER_RECEIPTS === 'durable' },
  })
  await made.ready()
  return made
}
