import type { Log } from '../../../shared/log/log.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { pause } from '../../../shared/sql/db-fault.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import { runIndex } from '../../runs/search/run-index.ts'
import type { Directory, Move } from '../directory.ts'
import { hasOwnDataKeys, lendReceiptKeys } from '../identity.ts'
import { copyAll, copyChanges, copyLast, deleteAll, rowsOfTenant, type Sides } from './copy-rows.ts'
import {
  clearOwed,
  fence,
  isOwed,
  liftFence,
  openForDeletion,
  phaseOf,
  restoreDueTimes,
  startChangeCapture,
  stopChangeCapture,
} from './fence.ts'
import { MOVED, tenantOf } from './moved-tables.ts'

/** Between which steps a move can be interrupted. */
export const MOVE_POINTS = [
  'begun',
  'noting',
  'copied',
  'checked',
  'announced',
  'fenced',
  'copiedAtRest',
  'compared',
  'switched',
  'timesGivenBack',
] as const
export type MovePoint = (typeof MOVE_POINTS)[number]

export interface MoveDeps {
  directory: Directory
  from: Db
  to: Db
  clock: Clock
  log: Log
  /** Checks these receipts at the new place, or all of the tenant; answers what does not hold. */
  brokenReceipts: (db: Db, tenantId: string, runIds: readonly string[] | 'all') => Promise<string[]>
  reached?: (point: MovePoint, said: string) => void | Promise<void>
}

export interface Moved {
  fencedMs: number
}

/** A move that cannot be finished; it was taken back, and the tenant is where it was. */
export class MoveFailed extends Error {
  override name = 'MoveFailed'
}

/** Processes look for moves once a second. */
const NOTICE_MS = 2500
/** So few changes are copied in well under a second while the tenant waits. */
const FEW = 200
const MOST_PASSES = 1000

/**
 * Moves a tenant, or goes on with what was interrupted: each step may be done again. Until the directory names the new place, the old one
 * is right; from then on the new one is.
 */
export async function moveTenant(move: Move, deps: MoveDeps): Promise<Moved> {
  const { directory, from, to, reached = () => undefined } = deps
  const { tenantId } = move
  const sides: Sides = { from, to, tenantId }
  if (move.state === 'back') throw new MoveFailed('the move is being taken back: run it again with --back')
  if (move.state === 'switched') {
    await release(deps, sides)
    return { fencedMs: 0 }
  }
  const unchecked = new Set<string>()
  let allChecked = false
  if ((await phaseOf(from, tenantId)) !== 'fenced') {
    await reached('begun', `tenant ${tenantId}: from ${move.from} to ${move.to}`)
    await directory.setMove(tenantId, 'copying')
    if (await hasOwnDataKeys(to, from)) {
      throw new MoveFailed(
        `shard ${move.to} lacks data keys of shard ${move.from}: what is sealed under them would not open there`,
      )
    }
    await lendReceiptKeys(from, to, deps.clock.now().getTime())
    await startChangeCapture(from, tenantId)
    await reached('noting', 'what the tenant changes is noted')
    await copyAll(sides)
    await fewLeft(sides, unchecked)
    await reached('copied', 'everything is copied')
    await refuseBroken(deps, tenantId, 'all')
    allChecked = true
    unchecked.clear()
    await fewLeft(sides, unchecked)
    await reached('checked', 'every receipt of the copy holds')
    await directory.setMove(tenantId, 'fencing')
    await reached('announced', 'writes of the tenant are refused')
    await pause(NOTICE_MS)
    await fewLeft(sides, unchecked)
    await fence(from, tenantId)
  }
  const began = performance.now()
  await reached('fenced', 'the old database takes no writes of the tenant')
  while ((await copied(sides, unchecked)) > 0);
  await copyLast(sides)
  await reached('copiedAtRest', 'the last changes are copied')
  const found = await differences(sides)
  if (found.length > 0) throw new MoveFailed(`the copy is not the same: ${found.join('; ')}`)
  await refuseBroken(deps, tenantId, allChecked ? [...unchecked] : 'all')
  await reached('compared', 'the copy is the same')
  await directory.switchOver(move)
  const fencedMs = Math.round(performance.now() - began)
  await reached('switched', 'the directory names the new place')
  await release(deps, sides)
  await reached('timesGivenBack', 'what was due is due there')
  return { fencedMs }
}

async function copied(sides: Sides, unchecked: Set<string>): Promise<number> {
  const { changes, receipts } = await copyChanges(sides)
  for (const id of receipts) unchecked.add(id)
  return changes
}

/** Copies changes until few are left, or no pass makes them fewer. */
async function fewLeft(sides: Sides, unchecked: Set<string>): Promise<void> {
  for (let pass = 0; pass < MOST_PASSES; pass++) if ((await copied(sides, unchecked)) <= FEW) return
}

async function refuseBroken({ brokenReceipts, to }: MoveDeps, tenantId: string, which: readonly string[] | 'all') {
  const broken = await brokenReceipts(to, tenantId, which)
  if (broken.length > 0) throw new MoveFailed(`receipts do not hold in the copy: ${broken.join('; ')}`)
}

/** Once: a schedule that has had its only window since would have it again. */
async function release({ clock, log }: Pick<MoveDeps, 'clock' | 'log'>, { from, to, tenantId }: Sides): Promise<void> {
  if (!(await isOwed(from, tenantId))) return
  await restoreDueTimes(from, to, tenantId)
  // Its runs are older than what the index of the new place has read.
  const index = runIndex({ db: to, clock, log, fromFirst: true })
  await index.once()
  await index.close()
  await clearOwed(from, tenantId)
}

/** What may be done about a move beside finishing it. */
export interface MoveEnd {
  /** Fails, saying why, where the move is not as far, or too far, for it. */
  refuse: (move: Move) => void
  act: (move: Move, deps: Pick<MoveDeps, 'directory' | 'from' | 'to' | 'clock' | 'log'>) => Promise<void>
}

/** The tenant stays where it was, as if nothing had been; possible until the directory names the new place. */
export const undoMove: MoveEnd = {
  refuse({ tenantId, state, from, to }) {
    if (state !== 'switched') return
    throw new MoveFailed(`tenant ${tenantId} is at ${to} already: run --forget, then move it to ${from}`)
  },
  async act({ tenantId }, { directory, from, to }) {
    await directory.setMove(tenantId, 'back')
    if ((await phaseOf(from, tenantId)) !== undefined) await liftFence(from, tenantId)
    await deleteAll(to, tenantId)
    await directory.endMove(tenantId)
  },
}

/** Deletes the copy that a finished move has left. */
export const dropOldCopy: MoveEnd = {
  refuse({ state }) {
    if (state === 'switched') return
    throw new MoveFailed('the tenant is still being moved: run the move again, or take it back with --back')
  },
  async act({ tenantId }, { directory, from, to, clock, log }) {
    // By then every process asks at the new place, however soon after the switch this is.
    await pause(NOTICE_MS)
    if ((await phaseOf(from, tenantId)) !== undefined) {
      // Undone where the move was killed after the switch.
      await release({ clock, log }, { from, to, tenantId })
      await openForDeletion(from, tenantId)
      await deleteAll(from, tenantId)
      await stopChangeCapture(from, tenantId)
    }
    await directory.endMove(tenantId)
  },
}

const COUNTED = MOVED.filter(({ expires }) => !expires)

/** How many rows of each table a database has of a tenant. */
async function countsOf(db: Db, tenantId: string): Promise<ReadonlyMap<string, number>> {
  const results = await db.read(
    COUNTED.map(table => ({
      sql: `select count(*) as n from ${table.table} where ${tenantOf(table, table.table)} = ?`,
      args: [tenantId],
    })),
  )
  return new Map(COUNTED.map(({ table }, at) => [table, rowsOf<{ n: number }>(results[at]!)[0]!.n]))
}

/** Where the copy is not what was copied: numbers of rows, the hashes of every journal, every receipt and the end of the audit log. */
async function differences(sides: Sides): Promise<string[]> {
  const { from, to, tenantId } = sides
  const [here, there] = [await countsOf(from, tenantId), await countsOf(to, tenantId)]
  const found: string[] = []
  for (const [table, n] of here) {
    if (there.get(table) !== n) found.push(`${table} has ${n} rows, and ${there.get(table)} in the copy`)
  }
  for (const { table, columns } of HASHED) {
    const moved = MOVED.find(one => one.table === table)!
    const old = rowsOfTenant(from, { ...moved, columns }, tenantId)
    const copies = rowsOfTenant(to, { ...moved, columns }, tenantId)
    for (;;) {
      const [one, other] = [await old.next(), await copies.next()]
      if (JSON.stringify(one.value ?? []) !== JSON.stringify(other.value ?? [])) {
        found.push(`${table} is not the same in the copy`)
        break
      }
      if (one.done === true) break
    }
  }
  return found
}

/** The columns whose values stand for the rest of a row. */
const HASHED: readonly { table: string; columns: readonly string[] }[] = [
  { table: 'events', columns: ['run_id', 'seq', 'hash'] },
  { table: 'receipts', columns: ['run_id', 'envelope'] },
  { table: 'audit_log', columns: ['tenant_id', 'seq', 'hash'] },
  { table: 'audit_heads', columns: ['tenant_id', 'seq', 'hash'] },
]
