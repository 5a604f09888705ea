import type { Idempotent } from '../http/idempotent.ts'
import type { StreamClients } from '../http/stream-clients.ts'
import type { FollowDeps } from './follow.ts'
import type { SessionService } from './service.ts'
import type { SessionStore } from './store.ts'

export interface SessionsDeps extends FollowDeps {
  store: SessionStore
  service: SessionService
  idempotent: Idempotent
  maxBodyBytes: number
  heartbeatMs: number
  clients: StreamClients
  /** Whether a node holds that session: then nothing that is said in it may be kept here. */
  isElsewhere: (sessionId: string) => Promise<boolean>
}
