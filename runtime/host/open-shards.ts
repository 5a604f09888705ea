import { EnvError } from '../../shared/env/read-env.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { refuseMissing } from '../../shared/host/shard-file.ts'
import type { Log } from '../../shared/log/log.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { DbOpenError, pause } from '../../shared/sql/db-fault.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { refuseOtherShard } from '../../shared/sql/shard-name.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { RuntimeEnv } from '../env.ts'
import type { TunnelEndpoint } from '../nodes/gateway/well-known-route.ts'
import { createRuntime, type Runtime, type RuntimeOptions } from '../runtime.ts'
import { FIRST_TENANT } from '../schema/first-tenant.ts'
import { type Directory, directory, type Shard } from '../shards/directory.ts'
import { directorySteps } from '../shards/directory-steps.ts'
import { missingTenants } from '../shards/identity.ts'
import { type Places, places, type ShardService } from '../shards/places.ts'
import { SHARD_HEADER } from '../shards/request-route.ts'
import { shardedFetch } from '../shards/sharded-fetch.ts'
import { shardedGateway } from '../shards/sharded-gateway.ts'

export interface ServeShardsDeps {
  env: RuntimeEnv
  /** What every shard's runtime is made with. */
  options: Omit<RuntimeOptions, 'db'>
  log: Log
  /** Tries to log in at a shard, where several processes count them together. */
  loginTries?: ((shard: string) => RuntimeOptions['loginTries']) | undefined
}

/** What a host serves: one runtime, or one for each shard behind a router of requests. */
export type ServedRuntime = Pick<
  Runtime,
  'fetch' | 'ready' | 'setupToken' | 'nodes' | 'wake' | 'busy' | 'drain' | 'settled' | 'close'
> & { closeStores(): void | Promise<void> }

/** How soon a store that could not be opened is tried again, and how often the directory is asked for new shards. */
const AGAIN_MS = 1000
const NEW_SHARDS_MS = 5000

/** Opens the directory of PLATFORM_DIRECTORY_URL and brings it up to date. */
export async function openDirectory(env: RuntimeEnv): Promise<{ db: Db; shards: Directory }> {
  const { PLATFORM_DIRECTORY_URL: url, PLATFORM_DATABASE_TOKEN: token } = env
  if (url === undefined)
    throw new DbOpenError('bad_url', 'There is no directory of shards: set PLATFORM_DIRECTORY_URL.')
  const single = [env.PLATFORM_DATABASE_URL, env.PLATFORM_DATABASE_REPLICA_URL].some(given => given !== undefined)
  if (single) {
    throw new EnvError(
      'PLATFORM_DIRECTORY_URL names the databases: leave PLATFORM_DATABASE_URL and PLATFORM_DATABASE_REPLICA_URL out',
    )
  }
  const db = await openDb(url, { ...(token && { token }) })
  try {
    await migrate(db, 'directory', directorySteps)
  } catch (error) {
    db.close()
    throw error
  }
  return { db, shards: directory(db) }
}

/** Only `runtime shards add` makes one: elsewhere an empty database would stand in the place of a lost one. */
export async function openShardStore(
  env: RuntimeEnv,
  shard: Pick<Shard, 'name' | 'url'>,
  { create = false } = {},
): Promise<Db> {
  const { PLATFORM_DATABASE_TOKEN: token } = env
  if (!create) await refuseMissing(shard.url)
  const db = await openDb(shard.url, { ...(token && { token }) })
  try {
    if (!create) await refuseOtherShard(db, 'runtime_meta', shard)
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}

interface Opened extends ShardService {
  readonly shard: Shard
  open: { db: Db; runtime: Runtime } | undefined
  problem: string | undefined
}

/** A runtime for each shard of the directory, each with its own store and lease, behind one `fetch` and one tunnel. */
export async function serveShards({ env, options, log, loginTries }: ServeShardsDeps): Promise<ServedRuntime> {
  const { db: directoryDb, shards: known } = await openDirectory(env)
  const all: Opened[] = []
  const own = shardOpener({ env, options, log, loginTries }, known)
  const bootstrap = env.PLATFORM_BOOTSTRAP_KEY
  const found = places({
    directory: known,
    shards: () => all,
    clock: systemClock,
    log,
    known: new Map(bootstrap === undefined ? [] : [[sha256Hex(bootstrap), FIRST_TENANT]]),
  })
  wakeArrived(found, all)
  let closed = false
  let drained = false
  let looking: ReturnType<typeof setInterval> | undefined
  const runtimes = () => all.flatMap(({ open }) => (open ? [open.runtime] : []))
  const nodes = nodesOfAll(runtimes)

  async function open(one: Opened): Promise<{ runtime: Runtime }> {
    const opened = await own.open(one.shard)
    one.open = opened
    one.problem = undefined
    nodes.joined(opened.runtime)
    return opened
  }

  /** Until its store can be opened; the others are served meanwhile. */
  async function openInTime(one: Opened): Promise<void> {
    while (!closed && one.open === undefined) {
      await pause(AGAIN_MS)
      if (closed) return
      try {
        const { runtime } = await open(one)
        log.info('a shard is served', { shard: one.name })
        if (closed || drained) runtime.drain()
      } catch (error) {
        one.problem = sentence(error)
      }
    }
  }

  const newShards = async () => notAmong(all, await known.shards(), env.PLATFORM_SHARDS)

  async function lookForNew(): Promise<void> {
    const made = await newShards().catch((): Opened[] => [])
    all.push(...made)
    for (const one of made) void openInTime(one)
  }

  async function ready(): Promise<void> {
    all.push(...(await newShards()))
    if (all.length === 0) throw new DbOpenError('missing', NO_SHARDS)
    const failures: unknown[] = []
    await Promise.all(
      all.map(one =>
        open(one).catch((error: unknown) => {
          one.problem = sentence(error)
          failures.push(error)
          log.error('a shard cannot be opened and is tried again', { shard: one.name, error })
        }),
      ),
    )
    if (failures.length === all.length) throw failures[0]
    for (const one of all) if (one.open === undefined) void openInTime(one)
    found.start()
    looking = setInterval(() => void lookForNew(), NEW_SHARDS_MS)
  }

  return {
    fetch: shardedFetch({ directory: known, places: found, shards: () => all, now: systemClock.now, log }),
    ready,
    async setupToken() {
      const place = await found.shardOf(FIRST_TENANT)
      return all.find(({ name }) => name === place?.shard)?.open?.runtime.setupToken()
    },
    nodes: {
      gateway: shardedGateway({ places: found, shards: () => all }),
      whenWanted: nodes.whenWanted,
      listening: nodes.listening,
    },
    ...lifeOfAll(runtimes, {
      drains() {
        drained = true
        clearInterval(looking)
      },
      closes() {
        closed = true
        clearInterval(looking)
        found.stop()
      },
    }),
    async closeStores() {
      for (const { open } of all) await open?.db.close()
      await directoryDb.close()
    },
  }
}

/** What concerns the nodes of every shard: a runtime that joins later gets what the others got. */
function nodesOfAll(runtimes: () => readonly Runtime[]) {
  const wanted: (() => void)[] = []
  let listeningAt: TunnelEndpoint | undefined
  return {
    joined({ nodes }: Runtime): void {
      for (const listen of wanted) nodes.whenWanted(listen)
      if (listeningAt) nodes.listening(listeningAt)
    },
    whenWanted(listen: () => void): void {
      wanted.push(listen)
      for (const runtime of runtimes()) runtime.nodes.whenWanted(listen)
    },
    listening(at: TunnelEndpoint): void {
      listeningAt = at
      for (const runtime of runtimes()) runtime.nodes.listening(at)
    },
  }
}

/** The work of every shard's runtime, and its end. */
function lifeOfAll(runtimes: () => readonly Runtime[], { drains, closes }: { drains: () => void; closes: () => void }) {
  return {
    wake(): void {
      for (const runtime of runtimes()) runtime.wake()
    },
    busy: () => runtimes().some(runtime => runtime.busy()),
    drain(why?: Parameters<Runtime['drain']>[0]): void {
      drains()
      for (const runtime of runtimes()) runtime.drain(why)
    },
    async settled(ms: number): Promise<void> {
      await Promise.all(runtimes().map(runtime => runtime.settled(ms)))
    },
    async close(ms?: number): Promise<void> {
      closes()
      await Promise.all(runtimes().map(runtime => runtime.close(ms)))
    },
  }
}

/** Shards of the directory that this process serves, by name or all, and does not know yet. */
function notAmong(all: readonly Opened[], shards: readonly Shard[], names: readonly string[]): Opened[] {
  return shards
    .filter(shard => (names.length === 0 || names.includes(shard.name)) && !all.some(({ name }) => name === shard.name))
    .map(shard => ({ shard, name: shard.name, open: undefined, problem: undefined }))
}

const NO_SHARDS =
  'The directory has no shard that PLATFORM_SHARDS names: add one with `runtime shards add NAME --url URL`, or correct that list.'

/** After a switch the runs of a tenant are due within seconds, and no engine knows of them. */
const ARRIVES_MS = 30_000

function wakeArrived(found: Places, all: readonly Opened[]): void {
  const since = new Map<string, number>()
  found.onMoves(moves => {
    const switched = moves.filter(({ state }) => state === 'switched')
    for (const { tenantId, to } of switched) {
      const first = since.get(tenantId) ?? performance.now()
      since.set(tenantId, first)
      if (performance.now() - first < ARRIVES_MS) all.find(({ name }) => name === to)?.open?.runtime.wake()
    }
    const left = new Set(switched.map(({ tenantId }) => tenantId))
    for (const tenantId of since.keys()) if (!left.has(tenantId)) since.delete(tenantId)
  })
}

const sentence = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function shardOpener({ env, options, log, loginTries }: ServeShardsDeps, known: Directory) {
  async function openOwn(shard: Shard): Promise<Db> {
    const db = await openShardStore(env, shard)
    try {
      const missing = await missingTenants(known, db, shard)
      if (missing.length > 0)
        log.error('the directory places tenants in a shard that has none of that name', {
          shard: shard.name,
          tenants: missing.length,
          first: missing[0],
        })
      return db
    } catch (error) {
      await db.close()
      throw error
    }
  }

  return {
    async open(shard: Shard): Promise<{ db: Db; runtime: Runtime }> {
      const db = await openOwn(shard)
      const { peer } = options
      const runtime = createRuntime({
        ...options,
        db,
        log,
        loginTries: loginTries?.(shard.name),
        peer: peer && {
          ...peer,
          async fetch(request) {
            const headers = new Headers(request.headers)
            headers.set(SHARD_HEADER, shard.name)
            return peer.fetch(new Request(request, { headers }))
          },
        },
      })
      try {
        await runtime.ready()
        return { db, runtime }
      } catch (error) {
        await runtime.close().catch(() => undefined)
        await db.close()
        throw error
      }
    },
  }
}
