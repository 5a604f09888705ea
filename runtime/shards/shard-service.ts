import type { Db } from '../../shared/sql/db.ts'
import type { Runtime } from '../options.ts'

/** One shard as a process serves it: its store and its runtime, once both could be opened. */
export interface ShardService {
  readonly name: string
  /** Undefined while its store cannot be reached for the first time. */
  readonly open: { db: Db; runtime: Runtime } | undefined
  /** Why not, in a sentence. */
  readonly problem: string | undefined
}
