import { EnvError } from '../../../shared/env/read-env.ts'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { ApiError } from '../../../shared/http/api-error.ts'
import type { Log } from '../../../shared/log/log.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { pause } from '../../../shared/sql/db-fault.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import type { Access } from '../../auth/access.ts'
import { spentStore } from '../../budget/spent-store.ts'
import type { RouterEnv } from '../../env.ts'
import type { RouterOptions } from '../../options.ts'
import type { Router } from '../../router.ts'
import type { RouterDirectory, RouterShard } from '../../shards/directory.ts'
import { shardAccounts } from '../../shards/shard-accounts.ts'
import { shardPeers } from '../../shards/shard-peers.ts'
import { oneShardAway, type RouterShardService, shardedRouter } from '../../shards/sharded-router.ts'
import { type OpenRouter, openRouter } from '../open-router.ts'
import { receiptLocation } from '../receipt-location.ts'
import { openRouterDirectory } from './open-directory.ts'
import { withStore } from './shard-admin.ts'

/** How soon a store that could not be opened is tried again. */
const AGAIN_MS = 1000

/** What a host serves: one router, or one for each shard of the directory. */
export type ServedRouter = Pick<Router, 'fetch' | 'handleCall' | 'reload' | 'drain' | 'close'> & {
  settled: Promise<unknown> | undefined
}

export interface OpenShardsDeps {
  env: RouterEnv
  access: Access
  log: Log
  /** What every shard's router is made with. */
  options: Omit<RouterOptions, 'db' | 'receiptStorage'>
}

interface Opened extends RouterShardService {
  readonly shard: RouterShard
  open: (OpenRouter & NonNullable<RouterShardService['open']>) | undefined
}

/** The shards, and where the tenants of this router are; a new one gets its place. */
async function readPlaces({ env, access }: OpenShardsDeps, directory: RouterDirectory) {
  const shards = await directory.shards()
  if (shards.length === 0) {
    throw new EnvError('The directory has no shard: add one with `router shards add NAME --url URL`.')
  }
  const tenants = new Set([env.ROUTER_TENANT, ...access.keys.map(({ tenantId }) => tenantId)])
  const places = await directory.place([...tenants])
  const homeless = [...tenants].filter(tenant => !places.has(tenant))
  if (homeless.length > 0) {
    throw new EnvError(`No shard takes new tenants (${homeless.join(', ')}): open or add one with \`router shards\`.`)
  }
  return { shards, places }
}

/** A router for each shard of the directory, each with its own store and receipts, behind one entry. */
export async function openShards(deps: OpenShardsDeps): Promise<ServedRouter> {
  const { db, directory } = await openRouterDirectory(deps.env)
  try {
    return await openEach(deps, db, await readPlaces(deps, directory))
  } catch (error) {
    db.close()
    throw error
  }
}

interface Placed {
  shards: readonly RouterShard[]
  places: ReadonlyMap<string, string>
}

async function openEach(deps: OpenShardsDeps, directoryDb: Db, { shards, places }: Placed): Promise<ServedRouter> {
  const { env, access, log } = deps
  const all = shards.map((shard): Opened => ({ shard, name: shard.name, open: undefined }))
  const opener = shardOpener(deps, { directoryDb, all, shardOf: tenant => places.get(tenant) })
  await opener.start()
  const served = shardedRouter({
    access,
    tenantId: env.ROUTER_TENANT,
    sha256: nativeSha256,
    shards: () => all,
    shardOf: tenant => places.get(tenant),
    outHeaders: env.ROUTER_RESPONSE_HEADERS,
  })
  const failures: unknown[] = []
  await Promise.all(
    all.map(one =>
      opener.open(one).catch((error: unknown) => {
        failures.push(error)
        log.error('a shard cannot be opened and is tried again', { shard: one.name, error })
      }),
    ),
  )
  if (failures.length === all.length) throw failures[0]
  const late = all.filter(one => one.open === undefined).map(opener.openInTime)
  const routers = () => all.flatMap(({ open }) => open ?? [])
  return {
    fetch: served.fetch,
    handleCall: () => served.handleCall,
    settled: Promise.all(routers().map(({ settled }) => settled)),
    // Each reads the config anew, and tells of what it cannot use.
    reload: async () => (await Promise.all(routers().map(({ router }) => router.reload())))[0]!,
    drain() {
      opener.drain()
      for (const { router } of routers()) router.drain()
    },
    async close() {
      opener.close()
      await Promise.all(late)
      // What is on its way ends, and is then spent and recorded.
      await Promise.all(routers().map(({ router }) => router.close()))
      await opener.accounts.close()
      for (const { release } of routers()) await release()
      directoryDb.close()
    },
  }
}

interface OpenerDeps {
  directoryDb: Db
  all: readonly Opened[]
  shardOf: (tenant: string) => string | undefined
}

function shardOpener({ env, log, options }: OpenShardsDeps, { directoryDb, all, shardOf }: OpenerDeps) {
  const spent = new Map<string, ReturnType<typeof spentStore>>()
  const shared = spentStore(directoryDb)
  const accounts = shardAccounts({ clock: systemClock, log, shared, of: tenant => spent.get(shardOf(tenant) ?? '') })
  const peers = shardPeers({
    budgets: accounts.budgets,
    answering: () => all.flatMap(({ open }) => open?.db ?? []),
    stores: () =>
      all.map(({ name, open }) => {
        if (open) return open.db
        throw new ApiError('overloaded', oneShardAway(name), { headers: { 'retry-after': '5' } })
      }),
  })
  let closed = false
  let isDraining = false
  let ended: Promise<void> | undefined
  const { transport } = options
  // Of all of them, so it ends with the last.
  const pooled = transport && {
    ...transport,
    async close() {
      if (!closed) return
      ended ??= transport.close()
      await ended
    },
  }

  async function open(one: Opened): Promise<void> {
    const { name, shard } = one
    await withStore(env, shard, async () => undefined)
    const place = { ...receiptLocation(env), address: shard.url }
    const opened = await openRouter(env, place, {
      ...options,
      ...(pooled && { transport: pooled }),
      // Counted once for all of them.
      ...(one !== all[0] && { inFlight: () => 0 }),
      others: peers.of(name),
    })
    const own = spentStore(opened.db)
    try {
      await accounts.load(own)
    } catch (error) {
      await opened.router.close()
      await opened.release()
      throw error
    }
    spent.set(name, own)
    if (isDraining) opened.router.drain()
    one.open = { ...opened, handleCall: opened.router.handleCall() }
  }

  return {
    accounts,
    start: () => accounts.load(shared),
    open,
    /** Until its store can be opened; the others are served meanwhile. */
    async openInTime(one: Opened): Promise<void> {
      while (!closed && one.open === undefined) {
        await pause(AGAIN_MS)
        if (closed) return
        await open(one).then(
          () => log.info('a shard is served', { shard: one.name }),
          () => undefined,
        )
      }
    },
    drain() {
      isDraining = true
    },
    close() {
      closed = true
    },
  }
}
