import { isPassthrough } from '../../shared/wire/router/endpoints/inbound.ts'

/** What a path is to access (docs/spec/router.md §2.6). */
export type PathClass = 'open' | 'provider' | 'keyed' | 'metrics' | 'audit' | 'admin' | 'unknown'

const ROOMS: Readonly<Record<string, PathClass>> = {
  '/healthz': 'open',
  '/readyz': 'open',
  '/panel': 'open',
  '/openapi.json': 'open',
  '/.well-known/router-receipts': 'open',
  '/v1/messages': 'provider',
  '/v1/messages/count_tokens': 'provider',
  '/v1/chat/completions': 'provider',
  '/v1/models': 'provider',
  '/v1/capabilities': 'keyed',
  '/v1/feedback': 'keyed',
  '/v1/feedback/records': 'audit',
  '/metrics': 'metrics',
  '/v1/traces': 'audit',
  '/v1/savings': 'audit',
  '/v1/evals': 'audit',
  '/v1/checkpoints': 'audit',
  '/-/reload': 'admin',
}

/** The path is the one that routes are matched with, so that no other spelling of it is another room. */
export function pathClassOf(path: string): PathClass {
  if (Object.hasOwn(ROOMS, path)) return ROOMS[path]!
  if (path.startsWith('/v1/traces/')) return 'audit'
  if (path.startsWith('/panel/')) return 'open'
  if (path.startsWith('/v1/models/') || isPassthrough(path)) return 'provider'
  return 'unknown'
}
