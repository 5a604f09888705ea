import type { ChangeFeed } from '../../shared/http/change-feed.ts'
import type { UserStore } from '../auth/dashboard/user-store.ts'

export interface PagesDeps {
  users: Pick<UserStore, 'userOfLogin' | 'hasOwner' | 'hasAnybody'>
  live: Pick<ChangeFeed, 'follow'>
  now: () => Date
  monotonic: () => number
  maxBodyBytes: number
  heartbeatMs: number
  /** Of files that are the same for all; a page with its token is not compressed, so that its length says nothing of the token. */
  gzip?: ((text: string) => Uint8Array<ArrayBuffer>) | undefined
  publicUrl?: string | undefined
  /** Where people reach the panel of the router in this process; undefined where there is none. */
  routerPanel?: (() => string | undefined) | undefined
}
