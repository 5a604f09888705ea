import { ApiError } from '../../shared/http/api-error.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import { isProviderPath } from '../observe/target.ts'
import type { Access, Caller } from './access.ts'
import { keyring } from './keys.ts'
import { pageRefusal, type Sender } from './pages.ts'

export interface CallersDeps {
  access: Access
  /** Whose calls they are where there are no keys. */
  tenantId: string
  sha256: Sha256
}

export type Callers = ReturnType<typeof createCallers>

/** Who a request comes from, by its router key; what may not be asked is thrown as a refusal. */
export function createCallers({ access, tenantId, sha256 }: CallersDeps) {
  const { keys, reach, insecure, metricsOpen } = access
  const find = keyring(keys, sha256)
  const refusePage = pageRefusal(access)
  const anonymous: Caller = { tenantId, sees: tenantId, admin: true }

  function withoutKeys(room: PathClass): Caller {
    const closed = reach === 'network' && !insecure
    if (closed && room === 'metrics' && !metricsOpen) {
      throw new ApiError(
        'unauthorized',
        'metrics are closed on a network address until ROUTER_KEYS is set; ROUTER_METRICS_OPEN=1 opens them to everyone',
      )
    }
    if (closed && (room === 'audit' || room === 'admin')) {
      throw new ApiError(
        'unauthorized',
        'this path is closed on a network address until ROUTER_KEYS is set; ROUTER_INSECURE=1 opens it to everyone',
      )
    }
    return anonymous
  }

  function withKeys(room: PathClass, secret: string | undefined): Caller {
    if (room === 'open' || (room === 'metrics' && metricsOpen)) return { tenantId, sees: tenantId, admin: false }
    if (secret === undefined) throw new ApiError('unauthorized', `send your router key in ${requestHeaders.key}`)
    const key = find(secret)
    if (key === undefined) throw new ApiError('unauthorized', `the key in ${requestHeaders.key} is not known here`)
    if (room === 'admin' && !key.admin) {
      throw new ApiError('forbidden', 'this needs an admin key: one that is marked with ! in ROUTER_KEYS')
    }
    if (room === 'metrics' && !key.admin && keys.some(other => other.tenantId !== key.tenantId)) {
      throw new ApiError(
        'forbidden',
        'metrics are of all tenants: this needs an admin key, one that is marked with ! in ROUTER_KEYS',
      )
    }
    return { tenantId: key.tenantId, sees: key.admin ? undefined : key.tenantId, admin: key.admin }
  }

  const callerOf = (room: PathClass, key: string | undefined): Caller =>
    keys.length === 0 ? withoutKeys(room) : withKeys(room, key)

  return {
    of: callerOf,
    /** Whether there are keys of more than one tenant. */
    areOfSeveral: keys.some(key => key.tenantId !== keys[0]?.tenantId),
    /** Of a call to a provider, which no page of another site may make. */
    ofCall(sender: Sender, key: string | undefined): Caller {
      const refusal = refusePage(sender)
      if (refusal !== undefined) throw new ApiError('forbidden', refusal)
      return callerOf('provider', key)
    },
  }
}

/** What a path is to access (docs/spec/router.md §2.6). */
type PathClass = 'open' | 'provider' | 'keyed' | 'metrics' | 'audit' | 'admin' | 'unknown'

const ROOMS: Readonly<Record<string, PathClass>> = {
  '/healthz': 'open',
  '/readyz': 'open',
  '/panel': 'open',
  '/openapi.json': 'open',
  '/.well-known/router-receipts': 'open',
  '/v1/capabilities': 'keyed',
  '/v1/feedback': 'keyed',
  '/-/feedback/records': 'audit',
  '/metrics': 'metrics',
  '/-/traces': 'audit',
  '/-/savings': 'audit',
  '/-/evals': 'audit',
  '/-/checkpoints': 'audit',
  '/-/reload': 'admin',
}

/** The path is the one that routes are matched with, so that no other spelling of it is another room. */
export function pathClassOf(path: string): PathClass {
  if (Object.hasOwn(ROOMS, path)) return ROOMS[path]!
  if (path.startsWith('/-/traces/')) return 'audit'
  if (path.startsWith('/panel/')) return 'open'
  return isProviderPath(path) ? 'provider' : 'unknown'
}
