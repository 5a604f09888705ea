import { RefusedError } from '../../shared/host/known-fault.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { clockOfStore } from '../../shared/sql/server-clock.ts'
import type { RuntimeEnv } from '../env.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { type Directory, directory, type Move } from '../shards/directory.ts'
import { acquireHold, MoveTaken, releaseHold } from '../shards/move/hold.ts'
import {
  dropOldCopy,
  type MoveDeps,
  type Moved,
  type MoveEnd,
  MoveFailed,
  moveTenant,
  undoMove,
} from '../shards/move/move-tenant.ts'
import { checkStore, recordsOf } from './check-receipts.ts'
import { openShardStore } from './open-shards.ts'
import { withDirectory } from './shard-admin.ts'

type Vars = Record<string, string | undefined>

/**
 * Takes the move of a tenant from whatever command had it, and does something with it: the directory and both sides take its writes until
 * another command takes it. The directory comes first, since it says how far the move is.
 */
async function inHand<T>(
  stores: { directory: Db; from: Db; to: Db },
  tenantId: string,
  act: (hand: { directory: Directory; from: Db; to: Db }) => Promise<T>,
): Promise<T> {
  const holder = uuidv7()
  const known = await acquireHold(stores.directory, tenantId, holder)
  const from = await acquireHold(stores.from, tenantId, holder)
  const to = await acquireHold(stores.to, tenantId, holder)
  try {
    return await act({ directory: directory(known), from, to }).catch(refuseMove)
  } finally {
    // What stays of it is in no one's way.
    for (const db of Object.values(stores)) await releaseHold(db, tenantId, holder).catch(() => undefined)
  }
}

/** Opens both sides of a move for one act. */
async function between<T>(
  env: RuntimeEnv,
  shards: Directory,
  move: Omit<Move, 'state'>,
  act: (sides: { from: Db; to: Db }) => Promise<T>,
): Promise<T> {
  const all = await shards.shards()
  const shardOf = (name: string) => {
    const found = all.find(one => one.name === name)
    if (!found) throw new RefusedError(`there is no shard ${name}: see \`runtime shards list\``)
    return found
  }
  const from = await openShardStore(env, shardOf(move.from))
  try {
    const to = await openShardStore(env, shardOf(move.to))
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

const refuseMove = (error: unknown): never => {
  if (error instanceof MoveFailed || error instanceof MoveTaken) throw new RefusedError(error.message, { cause: error })
  throw error
}

export interface MoveOrder extends Pick<MoveDeps, 'reached'> {
  tenantId: string
  to: string
}

/** Moves a tenant to another shard, or finishes a move that was interrupted. */
export async function moveToShard(vars: Vars, { tenantId, to, ...how }: MoveOrder): Promise<Moved> {
  return withDirectory(vars, async (shards, env, db) => {
    const place = await shards.shardOf(tenantId)
    if (place === undefined) throw new RefusedError(`the directory has no tenant ${tenantId}: see \`GET /v1/tenants\``)
    const current = await shards.move(tenantId)
    refuseOther(current, to)
    if (current === undefined && place.shard === to)
      throw new RefusedError(`tenant ${tenantId} is in shard ${to} already`)
    const order = { tenantId, from: current?.from ?? place.shard, to }
    return between(env, shards, order, sides =>
      inHand({ directory: db, ...sides }, tenantId, async hand => {
        await hand.directory.beginMove(order, Date.now())
        const move = await hand.directory.move(tenantId)
        if (move === undefined)
          throw new RefusedError(`tenant ${tenantId} has been moved meanwhile: see \`runtime shards list\``)
        refuseOther(move, to)
        const records = await recordsOf(vars, sides.to)
        return moveTenant(move, {
          ...hand,
          ...how,
          clock: await clockOfStore(sides.to),
          log: silentLog(),
          brokenReceipts: async (store, id, which) =>
            (await checkStore(store, records, which === 'all' ? { tenantId: id } : { runIds: which })).broken,
        })
      }),
    )
  })
}

function refuseOther(move: Move | undefined, to: string): void {
  if (move === undefined || move.to === to) return
  const what =
    move.state === 'switched'
      ? 'its old copy has to be deleted first, with --forget'
      : 'finish that, or take it back with --back'
  throw new RefusedError(`tenant ${move.tenantId} is being moved from ${move.from} to ${move.to}: ${what}`)
}

async function withMove(vars: Vars, tenantId: string, { refuse, act }: MoveEnd): Promise<void> {
  await withDirectory(vars, async (shards, env, db) => {
    const moveOf = async (known: Directory): Promise<Move> => {
      const move = await known.move(tenantId)
      if (move === undefined)
        throw new RefusedError(`tenant ${tenantId} is not being moved, and no old copy of it is left`)
      refuse(move)
      return move
    }
    const move = await moveOf(shards).catch(refuseMove)
    await between(env, shards, move, sides =>
      inHand({ directory: db, ...sides }, tenantId, async hand =>
        act(await moveOf(hand.directory), { ...hand, clock: await clockOfStore(sides.to), log: silentLog() }),
      ),
    )
  })
}

/** Takes a move back that is not finished. */
export const undoShardMove = (vars: Vars, tenantId: string): Promise<void> => withMove(vars, tenantId, undoMove)

/** Deletes the copy that a finished move has left at the old place. */
export const dropMovedCopy = (vars: Vars, tenantId: string): Promise<void> => withMove(vars, tenantId, dropOldCopy)
