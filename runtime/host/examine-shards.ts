import type { RuntimeEnv } from '../env.ts'
import type { CheckOutcome } from './examine-server.ts'
import { openDirectory } from './open-shards.ts'

/** The settings as they would be for a shard alone. */
export interface ShardEnv {
  name: string | undefined
  env: RuntimeEnv
}

/** Each shard of the directory, so that it is examined as the only store of an installation is. */
export async function ofShards(env: RuntimeEnv): Promise<ShardEnv[]> {
  const { db, shards } = await openDirectory(env)
  try {
    return (await shards.shards()).map(({ name, url }) => ({
      name,
      env: { ...env, PLATFORM_DATABASE_URL: url, PLATFORM_DIRECTORY_URL: undefined },
    }))
  } finally {
    await db.close()
  }
}

/** What the directory says, and whether a move waits for the operator. */
export async function shards(env: RuntimeEnv, all: readonly ShardEnv[]): Promise<CheckOutcome> {
  if (all.length === 0) return { is: 'fail', says: 'it has no shard: add one with `runtime shards add NAME --url URL`' }
  const { db, shards: directory } = await openDirectory(env)
  try {
    const moves = await directory.moves()
    const open = moves.filter(({ state }) => state !== 'switched')
    const left = moves.filter(({ state }) => state === 'switched')
    if (open.length > 0) {
      const [{ tenantId, to }] = open as [(typeof open)[number]]
      const says = `tenant ${tenantId} is being moved to ${to}: where no process does it, run \`runtime shards move ${tenantId} --to ${to}\` again, or --back`
      return { is: 'warn', says }
    }
    if (left.length > 0) {
      const names = left.map(({ tenantId }) => tenantId).join(', ')
      return {
        is: 'warn',
        says: `old copies of moved tenants are left: run \`runtime shards move TENANT --forget\` for ${names}`,
      }
    }
    return { is: 'ok', says: `${all.length} shards: ${all.map(({ name }) => name).join(', ')}` }
  } finally {
    await db.close()
  }
}
