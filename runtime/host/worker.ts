import { createClient } from '@libsql/client/web'
import { readEnv } from '../../shared/env/read-env.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { platformOutside } from '../../shared/http/outbound/platform-outside.ts'
import { createLog } from '../../shared/log/log.ts'
import { prepareDb } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-open-error.ts'
import { setupLink } from '../auth/dashboard/setup-links.ts'
import type { Connection } from '../auth/http-env.ts'
import { readOAuthClients } from '../connectors/oauth/clients.ts'
import { runtimeEnv } from '../env.ts'
import { readProviders } from '../providers/environment.ts'
import { createRuntime, type Runtime } from '../runtime.ts'

type Vars = Record<string, string | undefined>

let runtime: Promise<Runtime> | undefined

/** The runtime on a WinterCG host. There is no disk here, so its store is a libSQL server. */
export default {
  async fetch(request: Request, vars: Vars): Promise<Response> {
    return (await running(vars)).fetch(request, connectionOf(request))
  },
  /** By a cron trigger of the platform, each minute. */
  async scheduled(_event: unknown, vars: Vars): Promise<void> {
    await (await running(vars)).scheduled()
  },
}

/** One runtime of this isolate; a start that failed is tried again at the next call. */
async function running(vars: Vars): Promise<Runtime> {
  runtime ??= start(vars)
  try {
    return await runtime
  } catch (error) {
    runtime = undefined
    throw error
  }
}

async function start(vars: Vars): Promise<Runtime> {
  const env = readEnv(runtimeEnv, vars)
  const { PLATFORM_DATABASE_URL: url, PLATFORM_DATABASE_TOKEN: authToken } = env
  if (url === undefined) throw new DbOpenError('bad_url', 'PLATFORM_DATABASE_URL: set the address of a libSQL server')
  const db = await prepareDb(createClient({ url, ...(authToken && { authToken }) }), { kind: 'remote' })
  const log = createLog({ filter: env.PLATFORM_LOG_LEVEL, write: line => console.error(line) })
  const { PLATFORM_MASTER_KEY: masterKey, PLATFORM_BOOTSTRAP_KEY: bootstrapKey, PLATFORM_PUBLIC_URL: publicUrl } = env
  for (const secret of [
    authToken,
    env.PLATFORM_METRICS_TOKEN,
    bootstrapKey,
    vars.PLATFORM_MASTER_KEY,
    vars.PLATFORM_RECEIPT_KEY,
  ]) {
    log.redact.register(secret)
  }
  if (masterKey === undefined) {
    log.warn(
      'PLATFORM_MASTER_KEY is not set, and there is no disk to keep one on: no secret can be stored, and run data stands in clear',
    )
  }
  const metricsAccess = { open: false, token: env.PLATFORM_METRICS_TOKEN } as const
  const maxBodyBytes = env.PLATFORM_MAX_BODY_BYTES
  const outside = platformOutside(outboundRule(env.PLATFORM_OUTBOUND_ALLOW))
  const demo = env.PLATFORM_DEMO !== 'off'
  const providers = readProviders(vars)
  const oauthClients = readOAuthClients(vars)
  for (const { secret } of oauthClients.values()) log.redact.register(secret)
  const made = createRuntime({
    ...{
      db,
      log,
      maxBodyBytes,
      metricsAccess,
      masterKey,
      bootstrapKey,
      publicUrl,
      outside,
      demo,
      providers,
      oauthClients,
    },
    ...{ defaultTimezone: env.PLATFORM_DEFAULT_TIMEZONE, receiptSeed: env.PLATFORM_RECEIPT_KEY, timers: false },
    turnTimeoutMs: env.PLATFORM_TURN_TIMEOUT,
  })
  await made.ready()
  const token = bootstrapKey === undefined ? await made.setupToken() : undefined
  if (token !== undefined) console.error(`setup    ${setupLink(publicUrl ?? '', token)}`)
  return made
}

/** The address that the edge saw; it sets this header itself and lets none through. */
function connectionOf(request: Request): Connection {
  const address = request.headers.get('cf-connecting-ip')
  return address === null ? {} : { address }
}
