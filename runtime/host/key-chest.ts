import { readEnv } from '../../shared/env/read-env.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeEnv } from '../env.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { openStore } from './open.ts'
import { chestOf, type KeyChest } from './store-keys.ts'

/** The API keys of an installation, for an operator who may open its stores: no key is asked for, and none limits what is made. */
export async function openKeyChest(
  vars: Record<string, string | undefined>,
  { create }: { create: boolean },
): Promise<KeyChest> {
  const env = readEnv(runtimeEnv, vars)
  if (env.PLATFORM_DIRECTORY_URL !== undefined) return (await import('./shard-keys.ts')).shardKeyChest(env)
  const db = await openStore(env, { create })
  await migrate(db, 'runtime', runtimeSteps)
  return { ...chestOf(env, db), close: () => db.close() }
}
