import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-open-error.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { routerSteps } from '../schema/steps.ts'

type Vars = Readonly<Record<string, string | undefined>>

/**
 * Opens a trace store for reading, as commands beside a running router do. With ROUTER_DB_REPLICA_OF the path names a copy of our own
 * that follows that server, as of now. Fails with a sentence when it is no store.
 */
export async function openStoreToRead(vars: Vars, address: string | undefined): Promise<Db> {
  const syncUrl = vars.ROUTER_DB_REPLICA_OF || undefined
  return open(vars, address, { readOnly: true, ...(syncUrl && { syncUrl }) })
}

/** Opens a trace store for what a command changes in it. A copy that follows a server takes no change. */
export async function openStoreToWrite(vars: Vars, address: string | undefined): Promise<Db> {
  const server = vars.ROUTER_DB_REPLICA_OF
  if (server) {
    const message = 'This store is a read-only copy that follows a server (ROUTER_DB_REPLICA_OF): write to that server.'
    throw new DbOpenError('no_permission', message)
  }
  return open(vars, address, {})
}

async function open(vars: Vars, address: string | undefined, how: { readOnly?: boolean; syncUrl?: string }) {
  const token = vars.ROUTER_DB_TOKEN
  const db = await openDb(address ?? (vars.ROUTER_DB || 'router.db'), { ...how, ...(token && { token }) })
  try {
    await migrate(db, 'router', routerSteps)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
