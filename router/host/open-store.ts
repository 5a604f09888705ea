import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { routerSteps } from '../schema/steps.ts'

/** Opens a trace store for reading, as commands beside a running router do. Fails with a sentence when it is none. */
export async function openStoreToRead(
  vars: Readonly<Record<string, string | undefined>>,
  address: string | undefined,
): Promise<Db> {
  const token = vars.ROUTER_DB_TOKEN
  const db = await openDb(address ?? (vars.ROUTER_DB || 'router.db'), { readOnly: true, ...(token && { token }) })
  try {
    await migrate(db, 'router', routerSteps)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
