import { availableParallelism } from 'node:os'
import { EnvError, readEnv } from '../../../shared/env/read-env.ts'
import { processCount, replacedOnSignal } from '../../../shared/host/processes/process-group.ts'
import { type RuntimeEnv, runtimeEnv } from '../../env.ts'
import { MOST_WRITERS } from '../../vault/key-leases.ts'
import type { RuntimeService } from '../node.ts'
import { refuseShards } from '../open.ts'
import { openDirectory } from '../open-shards.ts'

type Vars = Record<string, string | undefined>

/** Each process writes to every database that it serves, so shards allow no more than one database does. */
const ADVISED_WRITERS = 2
const SERVER = /^(?:libsql|https?|wss?):/i

/** The runtime in as many processes as the environment asks for. */
export async function serveConfigured(vars: Vars): Promise<RuntimeService> {
  const env = readEnv(runtimeEnv, vars)
  refuseShards(env)
  const asked = env.PLATFORM_PROCESSES
  const file = asked === '1' ? undefined : await fileOf(env)
  const most = file === undefined ? ADVISED_WRITERS : 1
  const count = processCount('PLATFORM_PROCESSES', asked, () => Math.min(availableParallelism(), most))
  if (count === 1) return (await import('../node.ts')).serveRuntime(vars)
  if (file !== undefined)
    throw new EnvError(
      `PLATFORM_PROCESSES: one process writes a file, and ${file} is one: name a libSQL server in PLATFORM_DATABASE_URL, or shards on such servers in PLATFORM_DIRECTORY_URL, or leave it at 1.`,
    )
  if (count > MOST_WRITERS)
    throw new EnvError(
      `PLATFORM_PROCESSES: at most ${MOST_WRITERS} processes write to one database of a libSQL server, and each process writes to every shard: set it to ${MOST_WRITERS} or less; ${ADVISED_WRITERS} are advised.`,
    )
  if (env.PLATFORM_PEER_URL !== undefined)
    throw new EnvError(
      'PLATFORM_PEER_URL: it names one process, and several answer at this address. Leave it unset: they find the nodes of each other by themselves. Where control planes of other machines have to find them, run one process here.',
    )
  const { serveProcesses } = await import('./supervise.ts')
  const group = await serveProcesses(vars, count)
  return { ...replacedOnSignal(group), setupLink: group.setupLink }
}

/** A database of the service that is a file; undefined where all of them are on servers. */
async function fileOf(env: RuntimeEnv): Promise<string | undefined> {
  if (env.PLATFORM_DIRECTORY_URL === undefined) {
    const url = env.PLATFORM_DATABASE_URL
    return url !== undefined && SERVER.test(url) ? undefined : (url ?? `the store in ${env.PLATFORM_DATA_DIR}`)
  }
  const { db, shards } = await openDirectory(env)
  try {
    const known = await shards.shards()
    const names = env.PLATFORM_SHARDS
    const served = known.filter(({ name }) => names.length === 0 || names.includes(name))
    return served.map(({ url }) => url).find(url => !SERVER.test(url))
  } finally {
    await db.close()
  }
}
