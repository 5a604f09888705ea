import type { Db } from '../../shared/sql/db.ts'
import type { Idempotent } from '../idempotency/idempotent.ts'
import type { PoolCredentials } from './credentials/pool-credentials.ts'
import type { WellKnownDeps } from './gateway/well-known-route.ts'
import type { Reach } from './peers/reachable-nodes.ts'
import type { NodeStore } from './registry/store.ts'
import type { EndingHere } from './runs/end-remote-run.ts'
import type { FarRun } from './runs/remote-run.ts'

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
