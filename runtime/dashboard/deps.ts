import type { UserStore } from '../auth/dashboard/user-store.ts'
import type { LiveFigures } from './live.ts'

export interface PagesDeps {
  users: Pick<UserStore, 'userOfLogin' | 'hasOwner' | 'hasAnybody'>
  live: Pick<LiveFigures, 'follow'>
  now: () => Date
  monotonic: () => number
  maxBodyBytes: number
  heartbeatMs: number
  publicUrl?: string | undefined
  /** Where people reach the panel of the router in this process; undefined where there is none. */
  routerPanel?: (() => string | undefined) | undefined
}
