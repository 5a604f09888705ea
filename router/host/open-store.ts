import { EnvError } from '../../shared/env/read-env.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-fault.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { routerSteps } from '../schema/steps.ts'

/** A store that a command reads, and the name of the shard where there are several. */
export interface PlacedStore {
  address: string
  shard?: string
  /** Whether the records of a tenant belong there; one that the directory does not know belongs to the first shard. */
  holds?: (tenant: string) => boolean
}

type Vars = Readonly<Record<string, string | undefined>>

/**
 * Opens a trace store for reading, as commands beside a running router do. With ROUTER_DB_REPLICA_OF the path names a copy of our own
 * that follows that server, as of now. Fails with a sentence when it is no store.
 */
export async function openStoreToRead(vars: Vars, address: string | undefined, tenant?: string): Promise<Db> {
  const { address: place } = await onePlace(vars, address, tenant)
  return openPlaced(vars, place)
}

/** Opens one of `storePlaces`. */
export async function openPlaced(vars: Vars, address: string): Promise<Db> {
  const syncUrl = vars.ROUTER_DB_REPLICA_OF || undefined
  return open(vars, address, { readOnly: true, ...(syncUrl && { syncUrl }) })
}

/** The store that was named, or those of the directory; of one tenant the one that it is in. */
export async function storePlaces(vars: Vars, address: string | undefined, tenant?: string): Promise<PlacedStore[]> {
  if (address !== undefined) return [{ address }]
  if (!vars.ROUTER_DIRECTORY_URL) return [{ address: vars.ROUTER_DB || 'router.db' }]
  const { readDirectory } = await import('./shards/shard-admin.ts')
  const { shards, places } = await readDirectory(vars)
  if (shards.length === 0)
    throw new EnvError('the directory of shards has none: correct ROUTER_DIRECTORY_URL, or run `router shards add`')
  const named = tenant === undefined ? undefined : places.get(tenant)
  if (tenant !== undefined && named === undefined) {
    throw new EnvError(`the directory of shards knows no tenant ${tenant}: see \`router shards list\``)
  }
  const wanted = shards.filter(({ name }) => named === undefined || name === named)
  const first = shards[0]?.name
  return wanted.map(({ name, url }) => ({
    address: url,
    shard: name,
    holds: one => (places.get(one) ?? first) === name,
  }))
}

/** The same for a command that reads one store. */
export async function onePlace(vars: Vars, address: string | undefined, tenant?: string): Promise<PlacedStore> {
  const [first, ...others] = await storePlaces(vars, address, tenant)
  if (first !== undefined && others.length === 0) return first
  throw new EnvError('the tenants are in several stores: name one with --tenant, or a store with --db')
}

/** Opens a trace store for what a command changes in it. A copy that follows a server takes no change. */
export async function openStoreToWrite(vars: Vars, address: string | undefined, tenant?: string): Promise<Db> {
  const server = vars.ROUTER_DB_REPLICA_OF
  if (server) {
    const message = 'This store is a read-only copy that follows a server (ROUTER_DB_REPLICA_OF): write to that server.'
    throw new DbOpenError('no_permission', message)
  }
  return open(vars, (await onePlace(vars, address, tenant)).address, { create: false })
}

async function open(vars: Vars, address: string, how: { readOnly?: boolean; create?: false; syncUrl?: string }) {
  const token = vars.ROUTER_DB_TOKEN
  const db = await openDb(address, { ...how, ...(token && { token }) }).catch((error: unknown) => {
    if (!(error instanceof DbOpenError) || error.problem !== 'missing') throw error
    throw new DbOpenError('missing', `${error.message} Name the store in ROUTER_DB or with --db.`, { cause: error })
  })
  try {
    await migrate(db, 'router', routerSteps)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
