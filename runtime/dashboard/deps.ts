import type { ChangeFeed } from '../../shared/http/change-feed.ts'
import type { UserStore } from '../auth/dashboard/user-store.ts'
import type { StreamClients } from '../http/stream-clients.ts'

export interface PagesDeps {
  users: Pick<UserStore, 'userOfLogin' | 'isLoggedIn' | 'hasOwner' | 'hasAnybody'>
  live: Pick<ChangeFeed, 'follow' | 'mark' | 'isCrowded'>
  clients: StreamClients
  /** A bootstrap key takes the place of a setup link, which is then not printed. */
  takesBootstrapKey: boolean
  now: () => Date
  monotonic: () => number
  maxBodyBytes: number
  heartbeatMs: number
  /** Of files that are the same for all; with it pages are compressed as well. Absent on hosts that compress answers themselves. */
  gzip?: ((text: string) => Uint8Array<ArrayBuffer>) | undefined
  publicUrl?: string | undefined
  /** Where people reach the panel of the router in this process; undefined where there is none. */
  routerPanel?: (() => string | undefined) | undefined
}
