import type { Log } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { type Learner, type LearnerOptions, learner } from './learner.ts'
import { learningStore } from './learning-store.ts'

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
