import type { Db } from '../../shared/sql/db.ts'
import type { Idempotent } from '../http/idempotent.ts'
import type { PoolCredentials } from './credentials/pool-credentials.ts'
import type { WellKnownDeps } from './gateway/well-known-route.ts'
import type { ReachableNodes } from './peers/reachable-nodes.ts'
import type { NodeStore } from './registry/store.ts'
import type { RemoteRunCut } from './runs/end-remote-run.ts'
import type { RemoteRun } from './runs/remote-run.ts'

export interface NodesDeps extends WellKnownDeps {
  db: Db
  store: NodeStore
  reachableNodes: Pick<ReachableNodes, 'first'>
  credentials: Pick<PoolCredentials, 'list' | 'put' | 'remove'>
  end: (id: string, end: RemoteRunCut) => Promise<boolean>
  openOn: (nodeId: string) => Promise<RemoteRun[]>
  idempotent: Idempotent
  now: () => Date
  newId: () => string
  lostMs: number
  /** A node is announced: from now on this process listens for it, at an address that the command names. */
  wanted: () => Promise<void>
  maxBodyBytes: number
}
