import { createClient } from '@libsql/client/web'
import { readEnv } from '../../shared/env/read-env.ts'
import { createLog } from '../../shared/log/log.ts'
import { prepareDb } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-open-error.ts'
import { runtimeEnv } from '../env.ts'
import { createRuntime, type Runtime } from '../runtime.ts'

type Vars = Record<string, string | undefined>

let runtime: Promise<Runtime> | undefined

/** The runtime on a WinterCG host. There is no disk here, so its store is a libSQL server. */
export default {
  async fetch(request: Request, vars: Vars): Promise<Response> {
    runtime ??= start(vars)
    try {
      return (await runtime).fetch(request)
    } catch (error) {
      runtime = undefined
      throw error
    }
  },
}

async function start(vars: Vars): Promise<Runtime> {
  const env = readEnv(runtimeEnv, vars)
  const { PLATFORM_DATABASE_URL: url, PLATFORM_DATABASE_TOKEN: authToken } = env
  if (url === undefined) throw new DbOpenError('bad_url', 'PLATFORM_DATABASE_URL: set the address of a libSQL server')
  const db = await prepareDb(createClient({ url, ...(authToken && { authToken }) }), { kind: 'remote' })
  const log = createLog({ filter: env.PLATFORM_LOG_LEVEL, write: line => console.error(line) })
  const metricsAccess = { open: false, token: env.PLATFORM_METRICS_TOKEN } as const
  const made = createRuntime({ db, log, maxBodyBytes: env.PLATFORM_MAX_BODY_BYTES, metricsAccess })
  await made.ready()
  return made
}
