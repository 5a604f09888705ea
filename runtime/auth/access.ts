import type { Log } from '../../shared/log/log.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Principal } from '../http/http-env.ts'
import { idempotencyStore } from '../http/idempotency-store.ts'
import { type Idempotent, idempotency } from '../http/idempotent.ts'
import { lastingValue } from '../lasting-value.ts'
import { type Holding, tenantStore } from '../tenants/store.ts'
import { personStore } from '../users/store.ts'
import type { Records } from '../vault/records.ts'
import { loginAccess, newToken } from './dashboard/login-access.ts'
import { type UserStore, userStore } from './dashboard/user-store.ts'
import { gates } from './gate.ts'
import { bearerKey, keyAccess } from './keys/key-access.ts'
import { keyStore } from './keys/store.ts'
import { passwords, type Scrypt } from './password.ts'
import type { Throttle } from './throttle.ts'

export interface AccessOptions {
  db: Db
  records: Records
  log: Log
  clock: Clock
  newId: () => string
  /** What may keep a tenant from being deleted. */
  holdings: readonly Holding[]
  bootstrapKey?: string | undefined
  publicUrl?: string | undefined
  scrypt?: Scrypt | undefined
  loginTries?: Throttle | undefined
}

/** Everything that decides who may call, put together; features take the slices they need. */
export function access(options: AccessOptions) {
  const { db, log, clock, newId, bootstrapKey, publicUrl } = options
  const { now, monotonic } = clock
  const keys = keyStore(db)
  const users = userStore(db)
  const known = keyAccess({ store: keys, now, log, bootstrapKey })
  const setupToken = setupLinks(users, now)
  const bootstrapHash = bootstrapKey === undefined ? undefined : sha256Hex(bootstrapKey)
  const idempotent: Idempotent = idempotency({ store: idempotencyStore(db, options.records), now, newId, log })
  const shared = { db, keys, now, newId }
  return {
    gates: gates({ keyAccess: known, logins: loginAccess(users, now) }),
    idempotent,
    keys: { ...shared, keyAccess: known },
    users: { ...shared, people: personStore(db), publicUrl },
    tenants: { ...shared, tenants: tenantStore(db, options.holdings) },
    dashboard: {
      ...shared,
      users,
      passwords: passwords(options.scrypt),
      monotonic,
      publicUrl,
      loginTries: options.loginTries,
      deviceSecret: lastingValue(db, 'device_secret', newToken),
      async setupHash(token: string) {
        const hash = sha256Hex(token)
        if (hash !== bootstrapHash) return hash
        return sha256Hex((await setupToken()) ?? '')
      },
    },
    setupToken,
    async principalOf({ headers }: Pick<Request, 'headers'>): Promise<Principal | undefined> {
      const key = bearerKey(headers.get('authorization') ?? undefined)
      return key === undefined ? undefined : known.principalOf(key)
    },
    close: () => known.flush(),
  }
}

/** A one-time token with which the first owner is made, for an hour; undefined once there is an owner. */
function setupLinks(users: Pick<UserStore, 'hasOwner' | 'addSetupToken'>, now: () => Date) {
  return async (): Promise<string | undefined> => {
    if (await users.hasOwner()) return undefined
    const token = newToken()
    await users.addSetupToken(sha256Hex(token), now().getTime())
    return token
  }
}

/** Addresses that are listened on and that a browser cannot open. */
const EVERY_ADDRESS = /(?<=^https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=[:/]|$)/

/** The token stands behind the `#`, so that no server, proxy or log on the way sees it. */
export function setupLink(base: string, token: string): string {
  return `${base.replace(EVERY_ADDRESS, 'localhost').replace(/\/$/, '')}/setup#token=${token}`
}
