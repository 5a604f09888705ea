import { EnvError } from '../../../shared/env/read-env.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import type { RouterEnv } from '../../env.ts'
import { type RouterDirectory, routerDirectory, routerDirectorySteps } from '../../shards/directory.ts'

export type DirectoryEnv = Pick<RouterEnv, 'ROUTER_DIRECTORY_URL' | 'ROUTER_DB_TOKEN'>

/** Opens the directory of ROUTER_DIRECTORY_URL and brings it up to date. */
export async function openRouterDirectory({
  ROUTER_DIRECTORY_URL: url,
  ROUTER_DB_TOKEN: token,
}: DirectoryEnv): Promise<{ db: Db; directory: RouterDirectory }> {
  if (!url) throw new EnvError('set ROUTER_DIRECTORY_URL: the database that says which shards the router has')
  const db = await openDb(url, { ...(token && { token }) })
  try {
    await migrate(db, 'router-directory', routerDirectorySteps)
    return { db, directory: routerDirectory(db) }
  } catch (error) {
    db.close()
    throw error
  }
}
