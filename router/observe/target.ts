import type { DialectName } from '../../shared/dialects/candidate.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

export type TracedApi = 'messages' | 'chat' | 'messages.count_tokens' | 'responses' | 'passthrough'

export interface Target {
  /** Which upstream it goes to, and how an error is shaped. */
  dialect: 'messages' | 'chat'
  api: TracedApi
  /** It makes a conversation shorter, which a route may send to the provider that holds it. */
  compacts?: true
}

/** The first segments of the vendors' paths, which clients also send without their `/v1`. */
const UNVERSIONED = new RegExp(
  `^/(?:${[
    ...['messages', 'complete', 'models', 'files', 'skills', 'chat', 'responses', 'completions', 'embeddings'],
    ...['images', 'audio', 'videos', 'moderations', 'uploads', 'vector_stores', 'batches', 'fine_tuning'],
    ...['conversations', 'assistants', 'threads', 'containers', 'evals', 'realtime'],
  ].join('|')})(?=[/?]|$)`,
)

/** What the router answers itself below `/v1`; all else there is a provider's. */
const OWN_PATHS: ReadonlySet<string> = new Set(['/v1/feedback', '/v1/capabilities'])

export const GOOGLE_KEY = 'x-goog-api-key'

/** Calls of a dialect that is not spoken here, under paths that may look like others. */
const OTHER_DIALECT =
  /^\/v1(?:beta|alpha)\d*\/(?:models|tunedModels)\/|^\/v1\/interactions(?:\/|$)|:(?:streamGenerateContent|generateContent|countTokens|embedContent|batchEmbedContents)$/

const ROUTED: Readonly<Record<string, Target>> = {
  '/v1/messages': { dialect: 'messages', api: 'messages' },
  '/v1/messages/count_tokens': { dialect: 'messages', api: 'messages.count_tokens' },
  '/v1/chat/completions': { dialect: 'chat', api: 'chat' },
  '/v1/responses': { dialect: 'chat', api: 'responses' },
}

/** The path and query of a call as providers name it: clients put `/v1` before it once, twice or not at all. */
export function versioned(target: string): string {
  if (target.startsWith('/v1/v1/')) return target.slice(3)
  return UNVERSIONED.test(target) ? `/v1${target}` : target
}

/** Where a request to a provider path belongs; undefined for every other path. */
export function targetOf(method: string, path: string, headers: HeaderList): Target | undefined {
  if (method === 'POST' && Object.hasOwn(ROUTED, path)) return ROUTED[path]
  if (!isProviderPath(path) || leadsAway(path)) return undefined
  // The key is one of neither provider, and under paths that all vendors have it would reach the wrong one.
  if (headerValue(headers, GOOGLE_KEY) !== undefined) return undefined
  return {
    dialect: vendorOf(path, headers),
    api: 'passthrough',
    ...(method === 'POST' && isCompaction(path) && { compacts: true }),
  }
}

/** Whether a path belongs to a provider: everything below `/v1` that is not the router's own. */
export function isProviderPath(path: string): boolean {
  return path.startsWith('/v1/') && path.length > 4 && !OWN_PATHS.has(path) && !isOtherDialect(path)
}

export const isOtherDialect = (path: string): boolean => OTHER_DIALECT.test(path)

/** Calls that only count the tokens of another, which is free: the API of one vendor, a path of the other. */
export const countsTokens = (api: TracedApi, path: string | undefined): boolean =>
  api === 'messages.count_tokens' || path === '/v1/responses/input_tokens'

/** Of a path or of a path with its query. */
export const isCompaction = (target: string): boolean => /^\/v1\/responses\/compact(?:\?|$)/.test(target)

/** Steps up, in any spelling that the reader of an address takes for one, would lead out of the provider's own paths. */
function leadsAway(path: string): boolean {
  return /[.%\\]/.test(path) && new URL(`http://upstream${path}`).pathname !== path
}

/** The path names the vendor where only one has it; of what both have, or may come to have, the headers say whose client it is. */
function vendorOf(path: string, headers: HeaderList): Target['dialect'] {
  if (path.startsWith('/v1/messages/')) return 'messages'
  if (path.startsWith('/v1/chat/') || path.startsWith('/v1/responses/')) return 'chat'
  const isAnthropic =
    headerValue(headers, 'anthropic-version') !== undefined || headerValue(headers, 'x-api-key') !== undefined
  return isAnthropic ? 'messages' : 'chat'
}

/** A version in the path of an address, as hosts that OpenAI's SDKs can call have it: `/v1`, `/v1beta/openai`, `/api/paas/v4`. */
const VERSION = /[^/]\/v\d+(?:(?:alpha|beta)\d*)?(?:\/|$)/

/** Ends the address of a host that has no version in it, which is given whole. */
const WHOLE = /\/chat\/completions$/

/** Joins a provider's base address and a request path with its query; a base that names the version already, or has none, gets none. */
export function joinUpstream(base: string, target: string, dialect: DialectName): string {
  const given = base.replace(/\/+$/, '')
  const root = dialect === 'messages' ? given : given.replace(WHOLE, '')
  const isVersioned = dialect === 'messages' ? root.endsWith('/v1') : root !== given || VERSION.test(root)
  return isVersioned && /^\/v1(?:[/?]|$)/.test(target) ? root + target.slice(3) : root + target
}
