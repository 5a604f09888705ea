import { RefusedError } from '../../shared/host/known-fault.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { clockOfStore } from '../../shared/sql/server-clock.ts'
import type { RuntimeEnv } from '../env.ts'
import { runtimeSteps } from '../schema/steps.ts'
import type { Directory, Move } from '../shards/directory.ts'
import {
  forgetOldCopy,
  type MoveDeps,
  type Moved,
  MoveFailed,
  moveTenant,
  takeBack,
} from '../shards/move/move-tenant.ts'
import { checkStore, recordsOf } from './check-receipts.ts'
import { openShardStore } from './open-shards.ts'
import { withDirectory } from './shard-admin.ts'

type Vars = Record<string, string | undefined>

/** Opens both sides of a move for one act. */
async function between<T>(
  env: RuntimeEnv,
  shards: Directory,
  move: Move,
  act: (sides: { from: Db; to: Db }) => Promise<T>,
): Promise<T> {
  const all = await shards.shards()
  const urlOf = (name: string): { url: string } => {
    const found = all.find(one => one.name === name)
    if (!found) throw new RefusedError(`there is no shard ${name}: see \`runtime shards list\``)
    return found
  }
  const from = await openShardStore(env, urlOf(move.from))
  try {
    const to = await openShardStore(env, urlOf(move.to))
    try {
      await Promise.all([from, to].map(db => migrate(db, 'runtime', runtimeSteps)))
      return await act({ from, to })
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
}

const told = (error: unknown): never => {
  if (error instanceof MoveFailed) throw new RefusedError(error.message, { cause: error })
  throw error
}

export interface MoveOrder extends Pick<MoveDeps, 'reached'> {
  tenantId: string
  to: string
}

/** Moves a tenant to another shard, or finishes a move that was interrupted. */
export async function moveToShard(vars: Vars, { tenantId, to, ...how }: MoveOrder): Promise<Moved> {
  return withDirectory(vars, async (shards, env) => {
    const place = await shards.placeOf(tenantId)
    if (place === undefined) throw new RefusedError(`the directory has no tenant ${tenantId}: see \`GET /v1/tenants\``)
    let move = await shards.move(tenantId)
    if (move !== undefined && move.to !== to) {
      const what =
        move.state === 'switched'
          ? 'its old copy has to be deleted first, with --forget'
          : 'finish that, or take it back with --back'
      throw new RefusedError(`tenant ${tenantId} is being moved from ${move.from} to ${move.to}: ${what}`)
    }
    if (move === undefined) {
      if (place.shard === to) throw new RefusedError(`tenant ${tenantId} is in shard ${to} already`)
      move = { tenantId, from: place.shard, to, state: 'copying' }
      // Before anything is noted: a name that is not there must leave nothing behind.
      await between(env, shards, move, async () => undefined)
      await shards.beginMove(move, Date.now())
    }
    const order = move
    return between(env, shards, order, async sides => {
      const records = await recordsOf(vars, sides.to)
      return moveTenant(order, {
        ...sides,
        ...how,
        directory: shards,
        clock: await clockOfStore(sides.to),
        log: silentLog(),
        brokenReceipts: async (db, id, which) =>
          (await checkStore(db, records, which === 'all' ? { tenantId: id } : { runIds: which })).broken,
      }).catch(told)
    })
  })
}

async function withMove(vars: Vars, tenantId: string, act: typeof takeBack | typeof forgetOldCopy): Promise<void> {
  await withDirectory(vars, async (shards, env) => {
    const move = await shards.move(tenantId)
    if (move === undefined)
      throw new RefusedError(`tenant ${tenantId} is not being moved, and no old copy of it is left`)
    await between(env, shards, move, sides => act(move, { directory: shards, ...sides }).catch(told))
  })
}

/** Takes a move back that is not finished. */
export const takeMoveBack = (vars: Vars, tenantId: string): Promise<void> => withMove(vars, tenantId, takeBack)

/** Deletes the copy that a finished move has left at the old place. */
export const forgetMoved = (vars: Vars, tenantId: string): Promise<void> => withMove(vars, tenantId, forgetOldCopy)
