import type { MountedRoute } from '../../shared/http/routes.ts'
import { isPassthrough } from '../../shared/wire/router/endpoints/inbound.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

export type TracedApi = 'messages' | 'chat' | 'messages.count_tokens' | 'responses'

export interface Target {
  /** Which upstream it goes to, and how an error is shaped. */
  dialect: 'messages' | 'chat'
  /** Undefined for paths that pass without a record. */
  api: TracedApi | undefined
}

/** The provider paths that take one method only, for an answer that names it. */
export const PROVIDER_ROUTES: readonly MountedRoute[] = [
  { method: 'POST', path: '/v1/messages' },
  { method: 'POST', path: '/v1/chat/completions' },
  { method: 'POST', path: '/v1/messages/count_tokens' },
  { method: 'GET', path: '/v1/models' },
  { method: 'GET', path: '/v1/models/:id' },
]

const UNVERSIONED = /^\/(?:messages|chat\/completions|responses|completions|embeddings|models|files)(?=[/?]|$)/

/** The path and query of a call as providers name it: clients put `/v1` before it once, twice or not at all. */
export function versioned(target: string): string {
  if (target.startsWith('/v1/v1/')) return target.slice(3)
  return UNVERSIONED.test(target) ? `/v1${target}` : target
}

/** Where a request to a provider path belongs; undefined for every other path. */
export function targetOf(method: string, path: string, headers: HeaderList): Target | undefined {
  if (path === '/v1/messages') return method === 'POST' ? { dialect: 'messages', api: 'messages' } : undefined
  if (path === '/v1/chat/completions') return method === 'POST' ? { dialect: 'chat', api: 'chat' } : undefined
  if (path === '/v1/messages/count_tokens') {
    return method === 'POST' ? { dialect: 'messages', api: 'messages.count_tokens' } : undefined
  }
  if (path === '/v1/responses' && method === 'POST') return { dialect: 'chat', api: 'responses' }
  if (leadsAway(path)) return undefined
  if (path === '/v1/models' || path.startsWith('/v1/models/')) {
    if (method !== 'GET' && method !== 'HEAD') return undefined
    return { dialect: speaksMessages(headers) ? 'messages' : 'chat', api: undefined }
  }
  if (!isPassthrough(path)) return undefined
  // Files exist at both vendors; the rest of the list names its dialect by its path.
  const messages = path.startsWith('/v1/messages/') || (path.startsWith('/v1/files') && speaksMessages(headers))
  return { dialect: messages ? 'messages' : 'chat', api: undefined }
}

/** Steps up, in any spelling that the reader of an address takes for one, would lead out of the provider's own paths. */
function leadsAway(path: string): boolean {
  return /[.%\\]/.test(path) && new URL(`http://upstream${path}`).pathname !== path
}

function speaksMessages(headers: HeaderList): boolean {
  return headerValue(headers, 'anthropic-version') !== undefined || headerValue(headers, 'x-api-key') !== undefined
}

/** Joins a provider's base address and a request path with its query; a base that ends in `/v1` does not repeat it. */
export function joinUpstream(base: string, target: string): string {
  const root = base.replace(/\/+$/, '')
  return root.endsWith('/v1') && /^\/v1(?:[/?]|$)/.test(target) ? root + target.slice(3) : root + target
}
