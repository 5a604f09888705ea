import type { Log } from '../../../shared/log/log.ts'
import type { AuditLog } from '../../audit-log/log.ts'
import type { KeyStore } from '../keys/store.ts'
import type { Passwords } from '../password.ts'
import type { Throttle } from '../throttle.ts'
import type { UserStore } from './user-store.ts'

export interface DashboardDeps {
  users: UserStore
  keys: KeyStore
  passwords: Passwords
  now: () => Date
  monotonic: () => number
  newId: () => string
  audit: Pick<AuditLog, 'intend' | 'done' | 'drop'>
  log: Log
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl?: string | undefined
  /** Counts tries to log in, where something else than this app outlives it. */
  loginTries?: Throttle | undefined
  /** Under what the devices are known that have logged in before; the same in every process on a store. */
  deviceSecret: () => Promise<string>
  /** Under which hash a setup token is stored. For the bootstrap key one is made, which stands for it. */
  setupHash: (token: string) => Promise<string>
}
