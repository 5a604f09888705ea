import type { Db } from '../../shared/sql/db.ts'
import type { Idempotent } from '../idempotency/idempotent.ts'
import type { EndingHere } from './ending.ts'
import type { FarRun } from './far-run.ts'
import type { PoolCredentials } from './pool-credentials.ts'
import type { Reach } from './reach.ts'
import type { NodeStore } from './store.ts'
import type { WellKnownDeps } from './well-known.ts'

export interface NodesDeps extends WellKnownDeps {
  db: Db
  store: NodeStore
  reach: Pick<Reach, 'first'>
  credentials: Pick<PoolCredentials, 'list' | 'put' | 'remove'>
  end: (id: string, end: EndingHere) => Promise<boolean>
  openOn: (nodeId: string) => Promise<FarRun[]>
  idempotent: Idempotent
  now: () => Date
  newId: () => string
  lostMs: number
  /** A node is announced: from now on somebody has to listen for it, at an address that the command names. */
  wanted: () => Promise<void>
  maxBodyBytes: number
}
