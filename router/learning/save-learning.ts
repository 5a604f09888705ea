import type { Log } from '../../shared/log/log.ts'
import { type Db, objectIn, type RowOf, readRow, readRows, rowsOf } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import type { meta } from '../schema/tables.ts'
import { type Learner, type LearnerOptions, learner, type RouteExperience, type StoredExperience } from './learner.ts'

/** How much of what was learned a crash may take. */
const SAVE_MS = 5000

export interface KeepLearningDeps extends Omit<LearnerOptions, 'changed'> {
  /** Without a store, what is learned lives as long as the process. */
  db: Db | undefined
  log: Log
}

/** A learner that goes on where this store left off, and leaves there what it learns. */
export async function keepLearning({
  db,
  log,
  ...options
}: KeepLearningDeps): Promise<{ learner: Learner; settled: () => Promise<void>; close: () => Promise<void> }> {
  const store = db && learningStore(db)
  let saving: ReturnType<typeof setTimeout> | undefined
  const kept = learner({
    ...options,
    changed: () => {
      if (store) saving ??= setTimeout(() => void save(), SAVE_MS)
    },
  })
  if (store) kept.load(await store.all())

  async function save(): Promise<void> {
    clearTimeout(saving)
    saving = undefined
    const taken = kept.takeUnsaved()
    await store?.put(taken).catch((error: unknown) => {
      kept.returnUnsaved(taken)
      log.error('what was learned of start rungs could not be stored; it is tried again', { error })
    })
  }
  return {
    learner: kept,
    /** Stores at once what waits for its time. */
    settled: async () => {
      if (saving !== undefined) await save()
    },
    close: save,
  }
}

const PREFIX = 'learning/'
const put = insertRows(
  'router_meta',
  { key: 'text', value: 'text' },
  { after: 'on conflict (key) do update set value = excluded.value' },
)

/**
 * What was learned, a row for each route of a tenant, so that a restart does not begin anew. Several processes on one store learn for
 * themselves; the one that stored last is the one that a restart goes on from.
 */
export function learningStore(db: Db) {
  return {
    async all(): Promise<StoredExperience[]> {
      const answer = await db.execute(
        `select key, value from router_meta where key >= '${PREFIX}' and key < 'learning0'`,
      )
      const read = (row: RowOf<typeof meta>) =>
        readRow(row.key, row, ({ key, value }) => {
          const [, tenantId = '', routeFp = ''] = key.split('/')
          return { tenantId, routeFp, contexts: objectIn<RouteExperience>(value) }
        })
      // What cannot be read is learned anew.
      return readRows(rowsOf<RowOf<typeof meta>>(answer), read, () => undefined)
    },
    async put(learned: readonly StoredExperience[]): Promise<void> {
      if (learned.length === 0) return
      const rows = learned.map(({ tenantId, routeFp, contexts }) => ({
        key: `${PREFIX}${tenantId}/${routeFp}`,
        value: JSON.stringify(contexts),
      }))
      await db.execute(put.statement(rows))
    },
  }
}
