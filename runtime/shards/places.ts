import type { Log } from '../../shared/log/log.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { markUnavailable } from '../../shared/sql/db-fault.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { emailKey } from '../auth/dashboard/user-store.ts'
import type { Runtime } from '../options.ts'
import type { Directory, Move, TenantShard } from './directory.ts'
import type { Shown } from './request-route.ts'

/** Moves are looked for this often, so that every process knows of one by the time that it refuses writes. */
const WATCH_MS = 1000
/** A process that heard of no move for this long asks again where a tenant is. */
const FRESH_MS = 10_000
const MOST_KNOWN = 50_000

export interface PlacesDeps {
  directory: Directory
  shards: () => readonly ShardService[]
  clock: Pick<Clock, 'monotonic'>
  log: Log
  /** Digests that no shard has, such as that of the key of the environment. */
  known?: ReadonlyMap<string, string>
}

export type Places = ReturnType<typeof places>

/** Thrown where it cannot be said which shard it is: one that may know it does not answer. */
export class PlaceUnknownError extends Error {
  override name = 'PlaceUnknownError'
}

/** Where tenants are, as this process knows it. What it has learnt it goes on with while the directory is away. */
export function places(deps: PlacesDeps) {
  const { directory, shards, clock, log } = deps
  const found = new Map<string, { place: TenantShard; readAt: number }>()
  const asked = new Map<string, Promise<TenantShard | undefined>>()
  const movedListeners = new Set<(moves: readonly Move[]) => void>()
  let timer: ReturnType<typeof setInterval> | undefined
  let watching = false
  let away = false

  async function watch(): Promise<void> {
    if (watching) return
    watching = true
    try {
      const moves = await directory.moves()
      if (away) log.info('the directory of shards answers again')
      away = false
      for (const { tenantId, state, from, to } of moves) {
        const shard = state === 'switched' ? to : from
        if (!found.has(tenantId)) continue
        keep(found, tenantId, { place: { tenantId, shard, fenced: state === 'fencing' }, readAt: clock.monotonic() })
      }
      for (const listener of movedListeners) listener(moves)
      const open = new Set(moves.filter(({ state }) => state === 'fencing').map(({ tenantId }) => tenantId))
      // Taken back meanwhile.
      for (const [tenantId, { place }] of found) if (place.fenced && !open.has(tenantId)) found.delete(tenantId)
    } catch (error) {
      if (!away) log.warn('the directory of shards does not answer: tenants stay where they were', { error })
      away = true
    } finally {
      watching = false
    }
  }

  async function read(tenantId: string): Promise<TenantShard | undefined> {
    const before = found.get(tenantId)
    try {
      const place = (await directory.shardOf(tenantId)) ?? (await adopted(tenantId))
      if (place) keep(found, tenantId, { place, readAt: clock.monotonic() })
      else found.delete(tenantId)
      return place
    } catch (error) {
      if (before === undefined) throw error
      keep(found, tenantId, { ...before, readAt: clock.monotonic() })
      return before.place
    }
  }

  /** A tenant that was made and whose maker died before the directory heard of it. */
  async function adopted(tenantId: string): Promise<TenantShard | undefined> {
    const hit = await first(shards(), db => tenantIn(db, 'tenant', tenantId))
    if (hit === undefined) return undefined
    await directory.learn({ tenantId, shard: hit.shard })
    return directory.shardOf(tenantId)
  }

  return {
    tenantOf: tenantsByDigest(deps),

    async shardOf(tenantId: string): Promise<TenantShard | undefined> {
      const known = found.get(tenantId)
      if (known && clock.monotonic() - known.readAt < FRESH_MS) return known.place
      const open = asked.get(tenantId) ?? read(tenantId).finally(() => asked.delete(tenantId))
      asked.set(tenantId, open)
      return open
    },

    forget(tenantId: string): void {
      found.delete(tenantId)
    },

    /** Called each second with the moves that are under way or whose old copy still stands. */
    onMoves(listener: (moves: readonly Move[]) => void): void {
      movedListeners.add(listener)
    },

    start(): void {
      timer = setInterval(() => void watch(), WATCH_MS)
    },
    stop(): void {
      clearInterval(timer)
    },
  }
}

/** The tenant of what a caller shows, a digest; undefined where no shard knows it. */
function tenantsByDigest({ directory, shards, log, known = new Map() }: PlacesDeps) {
  const tenants = new Map<string, string>(known)
  return async (shown: Shown, hash: string): Promise<string | undefined> => {
    const remembered = tenants.get(hash)
    if (remembered !== undefined) return remembered
    const listed = await directory.tenantOf(hash).catch(() => undefined)
    if (listed !== undefined) {
      keep(tenants, hash, listed)
      return listed
    }
    const hit = await first(shards(), db => tenantIn(db, shown, hash))
    if (hit === undefined) return undefined
    keep(tenants, hash, hit.value)
    await directory.learn({ tenantId: hit.value, shard: hit.shard, hash }).catch((error: unknown) => {
      log.warn('the directory of shards could not be written', { error })
    })
    return hit.value
  }
}

/** As the newest entry; the oldest goes where there are too many. */
function keep<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > MOST_KNOWN) for (const [first] of map) if (map.delete(first)) break
}

/** What the first shard answers that has it. Those that do not answer count only where no other one has it. */
export async function first<T>(
  shards: readonly ShardService[],
  ask: (db: Db) => Promise<T | undefined>,
): Promise<{ shard: string; value: T } | undefined> {
  const silent: unknown[] = []
  const { promise, resolve } = Promise.withResolvers<{ shard: string; value: T } | undefined>()
  const all = shards.map(async ({ name, open }) => {
    try {
      if (open === undefined) throw new PlaceUnknownError(`shard ${name} is not open`)
      const value = await ask(open.db)
      if (value !== undefined) resolve({ shard: name, value })
    } catch (error) {
      silent.push(error)
    }
  })
  void Promise.all(all).then(() => resolve(undefined))
  const hit = await promise
  if (hit === undefined && silent.length > 0) {
    const cause = silent[0]
    return markUnavailable(() => Promise.reject(new PlaceUnknownError('a shard did not answer: connection', { cause })))
  }
  return hit
}

const WHOSE: Record<Shown | 'tenant', string> = {
  key: 'select tenant_id from api_keys where hash = ?',
  login: 'select tenant_id from logins join users on users.id = logins.user_id where logins.hash = ?',
  link: 'select tenant_id from user_links join users on users.id = user_links.user_id where user_links.hash = ?',
  oauthState: 'select tenant_id from oauth_rounds where state_hash = ?',
  enrolToken: 'select tenant_id from nodes where enrol_hash = ?',
  nodeToken: 'select tenant_id from node_tokens join nodes on nodes.id = node_tokens.node_id where hash = ?',
  nodeId: 'select tenant_id from nodes where id = ?',
  tenant: 'select id as tenant_id from tenants where id = ?',
}

/** The tenant of something that a caller shows, as one shard knows it. */
async function tenantIn(db: Db, shown: Shown | 'tenant', value: string): Promise<string | undefined> {
  const found = await db.execute({ sql: WHOSE[shown], args: [storableText(value)] })
  return rowsOf<{ tenant_id: string }>(found)[0]?.tenant_id
}

/** The tenants of a shard in which a person with this e-mail may log in. */
export async function tenantsOfEmail(db: Db, email: string): Promise<string[]> {
  const sql = 'select tenant_id from users where email = ? order by created_ms, id'
  const found = await db.execute({ sql, args: [storableText(emailKey(email))] })
  return rowsOf<{ tenant_id: string }>(found).map(({ tenant_id }) => tenant_id)
}

/** One shard as a process serves it: its store and its runtime, once both could be opened. */
export interface ShardService {
  readonly name: string
  /** Undefined while its store cannot be reached for the first time. */
  readonly open: { db: Db; runtime: Runtime } | undefined
  /** Why not, in a sentence. */
  readonly problem: string | undefined
}
