import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { type Compacted, compactFile } from '../../shared/host/compact-file.ts'
import { runtimeEnv } from '../env.ts'
import { openStore } from './open.ts'

/** Gives the room that deleted runs left back to the disk; how large the store was and is. */
export async function compact(vars: Record<string, string | undefined>): Promise<Compacted> {
  const env = readEnv(runtimeEnv, vars)
  const db = await openStore(env, { create: false })
  try {
    if (db.kind === 'remote') {
      throw new EnvError('PLATFORM_DATABASE_URL names a server: compact it with the server’s own means')
    }
    return await compactFile(db)
  } finally {
    await db.close()
  }
}
