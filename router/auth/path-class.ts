import { isProviderPath } from '../observe/target.ts'

/** What a path is to access (docs/spec/router.md §2.6). */
export type PathClass = 'open' | 'provider' | 'keyed' | 'metrics' | 'audit' | 'admin' | 'unknown'

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
