import type { UserStore } from '../auth/dashboard/user-store.ts'
import type { LiveFigures } from './live.ts'
import type { FigureStore } from './store.ts'

export interface PagesDeps {
  users: Pick<UserStore, 'userOfLogin' | 'hasOwner' | 'hasAnybody'>
  figures: FigureStore
  live: Pick<LiveFigures, 'follow'>
  now: () => Date
  maxBodyBytes: number
  heartbeatMs: number
  publicUrl?: string | undefined
  /** Where people reach the panel of the router in this process; undefined where there is none. */
  routerPanel?: (() => string | undefined) | undefined
}
