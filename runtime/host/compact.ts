import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import { runtimeEnv } from '../env.ts'
import { openStore } from './open.ts'

/** Gives the room that deleted runs left back to the disk; how large the store was and is. */
export async function compact(vars: Record<string, string | undefined>): Promise<{ before: number; after: number }> {
  const env = readEnv(runtimeEnv, vars)
  const db = await openStore(env, { create: false })
  async function size(): Promise<number> {
    const found = await db.execute('select page_count * page_size as bytes from pragma_page_count, pragma_page_size')
    return rowsOf<{ bytes: number }>(found)[0]!.bytes
  }
  try {
    if (db.kind === 'remote') {
      throw new EnvError('PLATFORM_DATABASE_URL names a server: compact it with the server’s own means')
    }
    const before = await size()
    await db.client.executeMultiple('vacuum')
    await db.execute('pragma wal_checkpoint(truncate)')
    return { before, after: await size() }
  } finally {
    db.close()
  }
}
