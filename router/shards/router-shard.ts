import type { Db } from '../../shared/sql/db.ts'
import type { HandleCall } from '../proxy/handle-call.ts'
import type { Router } from '../router.ts'

/** One shard as a process serves it: its store and its router, once that could be opened. */
export interface RouterShardService {
  readonly name: string
  /** Undefined while its store cannot be reached for the first time. */
  readonly open: { db: Db; router: Router; handleCall: HandleCall } | undefined
}

/** Why a tenant is refused whose shard has not been opened yet, and its certificates and accounts not been read. */
export const shardAway = (name: string): string =>
  `the store of this tenant (shard ${name}) does not answer yet: try again in a moment`

/** Why a caller who sees all tenants is refused: a list without one of the shards would be wrong. */
export const oneShardAway = (name: string): string =>
  `shard ${name} does not answer, and what is asked for is of all tenants: try again in a moment, or ask with the key of one tenant`
