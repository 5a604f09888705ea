import { parse } from 'hono/utils/cookie'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { LOGIN_COOKIE } from '../auth/dashboard/login-access.ts'
import { bearerKey, hashKey } from '../auth/keys/key-access.ts'
import { CALLBACK } from '../connectors/oauth/cookie.ts'
import { PEER_PATH } from '../nodes/peers/peer-route.ts'

/** What a digest is of: each kind stands in another table of a shard. */
export type Shown = 'key' | 'login' | 'link' | 'oauthState' | 'enrolToken' | 'nodeToken' | 'nodeId'

/** By what a request finds its shard. */
export type RequestRoute =
  | { by: 'digest'; shown: Shown; hash: string }
  /** The e-mail, or the token, stands in the body. */
  | { by: 'email' }
  | { by: 'link' }
  /** Where the first tenant is. */
  | { by: 'home' }
  /** The same in every shard. */
  | { by: 'any' }
  | { by: 'readiness' }
  | { by: 'metrics' }
  | { by: 'receiptKeys' }
  | { by: 'peer'; shard: string }

/** Control planes name the shard that they ask about. */
export const SHARD_HEADER = 'x-waybill-shard'

const SAME_EVERYWHERE = /^\/(?:healthz|openapi\.json|docs|receipts\/verify|\.well-known\/.*|ui\/files\/.*)$/

export function routeOf({ method, url, headers }: Pick<Request, 'method' | 'url' | 'headers'>): RequestRoute {
  const { pathname, searchParams } = new URL(url)
  if (pathname === '/readyz') return { by: 'readiness' }
  if (pathname === '/metrics') return { by: 'metrics' }
  if (pathname === '/.well-known/platform-receipts') return { by: 'receiptKeys' }
  if (pathname === PEER_PATH) return { by: 'peer', shard: headers.get(SHARD_HEADER) ?? '' }
  if (SAME_EVERYWHERE.test(pathname)) return { by: 'any' }
  if (pathname === '/setup' || pathname === '/auth/setup') return { by: 'home' }
  if (method === 'POST' && (pathname === '/login' || pathname === '/auth/login')) return { by: 'email' }
  if (method === 'POST' && pathname === '/auth/invitation') return { by: 'link' }
  if (pathname === CALLBACK) {
    return { by: 'digest', shown: 'oauthState', hash: sha256Hex(searchParams.get('state') ?? '') }
  }
  if (pathname === '/mcp' || pathname.startsWith('/v1/')) {
    const key = bearerKey(headers.get('authorization') ?? undefined)
    return key === undefined ? { by: 'any' } : { by: 'digest', shown: 'key', hash: hashKey(key) }
  }
  const token = parse(headers.get('cookie') ?? '', LOGIN_COOKIE)[LOGIN_COOKIE]
  return token === undefined ? { by: 'home' } : { by: 'digest', shown: 'login', hash: sha256Hex(token) }
}

/** An operation of the platform's administrator, on tenants that may be in other shards than the caller's. */
export type PlatformAct =
  | { act: 'list' }
  | { act: 'create' }
  | { act: 'inTenant'; tenantId: string; removes: boolean }
  | { act: 'onNode'; nodeId: string }

export function platformActOf({ method, url }: Pick<Request, 'method' | 'url'>): PlatformAct | undefined {
  const { pathname } = new URL(url)
  if (pathname === '/v1/tenants') {
    if (method === 'GET') return { act: 'list' }
    return method === 'POST' ? { act: 'create' } : undefined
  }
  const [, kind, id] = /^\/v1\/(tenants|nodes)\/([^/]+)(?:\/[a-z-]+)?$/.exec(pathname) ?? []
  if (kind === undefined || id === undefined) return undefined
  const named = decoded(id)
  if (kind === 'nodes') return { act: 'onNode', nodeId: named }
  return { act: 'inTenant', tenantId: named, removes: method === 'DELETE' }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
