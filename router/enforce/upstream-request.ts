import type { Change } from '../../shared/dialects/adapt/draft.ts'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import { askForUsage } from '../../shared/dialects/chat/usage-request.ts'
import type { Span } from '../../shared/dialects/json-scan.ts'
import { withoutThinking } from '../../shared/dialects/messages/strip-thinking.ts'
import type { RequestFacts } from '../../shared/dialects/request-facts.ts'
import type { NamedState } from '../../shared/dialects/responses/held.ts'
import { responsesToChat, responsesToMessages } from '../../shared/dialects/translate/from-responses.ts'
import { requestToChat } from '../../shared/dialects/translate/to-chat.ts'
import { requestToMessages } from '../../shared/dialects/translate/to-messages.ts'
import type { Accepted } from '../../shared/models/model-table.ts'
import { betasOf, cloudBody, cloudHost, cloudUrl, deploymentUrl } from '../cloud/cloud-request.ts'
import type { Credential } from '../config/credential.ts'
import type { Model } from '../config/model.ts'
import type { Provider, Route } from '../config/routing-config.ts'
import { joinUpstream } from '../observe/target.ts'
import { headerValue, toUpstream } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type AdaptedBody, adaptedBody, adaptedTranslation, isAdapted } from './adapted-body.ts'

/** A request of a client as the cascade works with it. */
export interface Inbound {
  dialect: DialectName
  /** Path and query, as they came. */
  target: string
  headers: HeaderList
  body: Uint8Array
  facts: RequestFacts & { model: NonNullable<RequestFacts['model']> }
  /** What only its provider knows; undefined where it brings all that it is about. */
  held?: NamedState | undefined
}

export type RungBody =
  | {
      ok: true
      body: Uint8Array<ArrayBuffer>
      /** What was changed for the model of the rung, and why. */
      changes: readonly Change[]
      /** Of the client, for this rung. */
      headers: HeaderList
      /** The limit of the output that is sent, where the request set one that was changed. */
      maxTokens: number | undefined
    }
  | { ok: false; refused: readonly string[] }

type DialectBody = Omit<Extract<RungBody, { ok: true }>, 'headers'> | Extract<RungBody, { ok: false }>

/**
 * The body for a rung. On the client's own dialect only the bytes of the `model` literal change, and those of settings that the
 * model does not take; otherwise the request is translated, or refused with every field that has no counterpart.
 */
export function rungBody(
  inbound: Inbound,
  rung: Model,
  provider: Provider,
  route: Route,
  /** Settings that the rung refused before. */
  refused: ReadonlySet<string> = NONE,
): RungBody {
  const made = dialectBody(inbound, rung, provider, route, refused)
  if (!made.ok) return made
  const leavesBetas = refused.has(BETAS) && rung.dialect === 'messages' && hasAdvisoryBeta(inbound.headers)
  const headers = leavesBetas ? withoutAdvisoryBetas(inbound.headers) : inbound.headers
  const changes = leavesBetas ? [...made.changes, { path: BETAS, to: null, why: 'refused' as const }] : made.changes
  const host = cloudHost(provider)
  if (host === undefined) return { ...made, changes, headers }
  return { ...made, changes, headers, body: owned(cloudBody(made.body, host, betasOf(headers))) }
}

const NONE: ReadonlySet<string> = new Set()
/** A model that the client has asked for may be sent calls which another rung has made. */
const ofHistory = ({ shortCallIds = false, signedCalls = false, thoughtTurns = false }: Accepted): Accepted => ({
  shortCallIds,
  signedCalls,
  thoughtTurns,
})

function dialectBody(
  inbound: Inbound,
  rung: Model,
  provider: Provider,
  route: Route,
  refused: ReadonlySet<string>,
): DialectBody {
  const { dialect, body, facts } = inbound
  const knows = rung.accepted !== undefined || refused.size > 0
  if (rung.dialect === dialect) {
    const made: AdaptedBody =
      knows && isAdapted(inbound, rung, route)
        ? adaptedBody(body, facts, rung, route, refused)
        : route.adapt && rung.accepted && Object.values(ofHistory(rung.accepted)).includes(true)
          ? adaptedBody(body, facts, { ...rung, accepted: ofHistory(rung.accepted) }, route, NONE)
          : { body: spliceModel(body, facts.model, rung.upstreamModel), changes: [], maxTokens: undefined }
    let sent = made.body
    if (dialect === 'messages' && route.thinkingPolicy === 'strip' && facts.hasThinkingHistory)
      sent = withoutThinking(sent)
    if (injectsUsage(inbound, provider) && !refused.has('stream_options')) sent = askForUsage(sent)
    return { ok: true, ...made, body: owned(sent) }
  }
  const options = {
    model: rung.upstreamModel,
    maxOutputTokens: rung.maxOutputTokens,
    jsonByGate: route.jsonByGate,
    stripThinking: route.thinkingPolicy === 'strip',
    legacyMaxTokens: provider.legacyMaxTokens,
    lenient: route.translate === 'adapt',
    structuredOutput: rung.accepted?.structuredOutput,
  }
  const made = translatorOf(dialect, rung.dialect)(body, options)
  if (!made.ok) return made
  const adapted: AdaptedBody =
    knows && route.adapt
      ? adaptedTranslation(made.body, rung.dialect, rung, route, refused)
      : { body: made.body, changes: [], maxTokens: undefined }
  const leftOut = made.dropped.map(path => ({ path, to: null, why: 'no_counterpart' as const }))
  return { ok: true, ...adapted, body: owned(adapted.body), changes: [...made.notes, ...leftOut, ...adapted.changes] }
}

/** Of the rungs of a ladder only those of the client's own dialect speak responses. */
function translatorOf(from: DialectName, to: DialectName) {
  if (from === 'responses') return to === 'messages' ? responsesToMessages : responsesToChat
  return to === 'messages' ? requestToMessages : requestToChat
}

/** Whether a call asks for usage in the client's place; what comes because of that is not the client's to see. */
export function injectsUsage({ dialect, facts }: Inbound, provider: Provider): boolean {
  return (
    provider.injectUsage && provider.dialect === 'chat' && dialect === 'chat' && facts.stream && !facts.includeUsage
  )
}

/** Where a call that is ours and not the client's goes; it is never streamed. */
export function generationUrl(provider: Provider, model: Model): string {
  const host = cloudHost(provider)
  if (host !== undefined) return cloudUrl(provider, host, model.upstreamModel, false)
  return (
    deploymentUrl(provider, model.upstreamModel) ?? joinUpstream(provider.baseUrl, PATH[model.dialect], model.dialect)
  )
}

/** The only generation path of each dialect; a query belongs to the dialect it was written for. */
const PATH = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }

export function upstreamUrl({ dialect, target, facts }: Inbound, provider: Provider, model: Model): string {
  const host = cloudHost(provider)
  if (host !== undefined) return cloudUrl(provider, host, model.upstreamModel, facts.stream)
  return (
    deploymentUrl(provider, model.upstreamModel) ??
    joinUpstream(provider.baseUrl, model.dialect === dialect ? target : PATH[model.dialect], model.dialect)
  )
}

/** The headers of a call that is ours and not the client's: of its own it carries no more than its key, where that may go. */
export function ownHeaders(
  { headers }: Inbound,
  provider: Provider,
  key: string | undefined,
  { credential, bytes }: { credential: Credential; bytes: number },
): HeaderList {
  const sent: HeaderList = [
    ['content-type', 'application/json'],
    ['accept', 'application/json'],
    ['accept-encoding', 'identity'],
    ['content-length', String(bytes)],
  ]
  if (credential === 'passthrough') {
    sent.push(...headers.filter(([name]) => ['authorization', 'x-api-key'].includes(name.toLowerCase())))
  }
  return withProviders(sent, provider, key)
}

/** Ours to set, whatever the client sent. */
const REPLACED = new Set([
  'content-length',
  'content-type',
  'accept-encoding',
  'cookie',
  // Keys of clients, in the headers of every vendor.
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'x-goog-user-project',
  // A signature of the client is over what it sent, and its token is a key.
  'x-amz-content-sha256',
  'x-amz-date',
  'x-amz-security-token',
])

/** The client's end-to-end headers for one attempt: credentials exchanged, the other dialect's own names left out. */
export function upstreamHeaders(
  { dialect, headers }: Inbound,
  provider: Provider,
  /** Our own key; undefined sends the client's, or none where the provider wants none. */
  key: string | undefined,
  { credential, bytes, first }: { credential: Credential; bytes: number; first: boolean },
): HeaderList {
  // Cloud hosts read version and betas from the body.
  // The Responses API is of the vendor of chat, and has its headers.
  const family = dialect === 'responses' ? 'chat' : dialect
  const own = provider.dialect === family && cloudHost(provider) !== 'sigv4'
  const foreign = own ? undefined : FOREIGN[family]
  const sent = toUpstream(headers, low => {
    if (credential === 'passthrough' && (low === 'authorization' || low === 'x-api-key')) return true
    // A key makes the upstream answer a second attempt with the first one's answer.
    if (REPLACED.has(low) || (low === 'idempotency-key' && !first)) return false
    return !foreign?.test(low)
  })
  sent.push(['content-type', 'application/json'], ['accept-encoding', 'identity'], ['content-length', String(bytes)])
  return withProviders(sent, provider, key)
}

function withProviders(sent: HeaderList, provider: Provider, key: string | undefined): HeaderList {
  const named = provider.dialect === 'messages' && cloudHost(provider) === undefined
  if (named && headerValue(sent, 'anthropic-version') === undefined) {
    sent.push(['anthropic-version', '2023-06-01'])
  }
  if (key !== undefined) sent.push(authHeader(provider, key))
  for (const name in provider.headers) sent.push([name, provider.headers[name]!])
  return sent
}

const FOREIGN = { messages: /^anthropic-/, chat: /^openai-/ }

function authHeader({ authHeader, dialect }: Provider, key: string): [string, string] {
  const name = authHeader ?? (dialect === 'messages' ? 'x-api-key' : 'authorization')
  return [name, name.toLowerCase() === 'authorization' ? `Bearer ${key}` : key]
}

function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Uint8Array<ArrayBuffer>) : Uint8Array.from(bytes)
}

/** By this name a refusal of betas is remembered, beside those of settings. */
export const BETAS = 'anthropic-beta'

/** Betas that only change how an answer is made or billed; one that a tool or the form of an answer needs is not among them. */
const ADVISORY =
  /^(?:claude-code|context-1m|context-management|interleaved-thinking|redact-thinking|adaptive-thinking|effort|output-128k|prompt-caching|prompt-caching-scope|extended-cache-ttl|fine-grained-tool-streaming|token-efficient-tools)-[\d-]{8,10}$/

const hasAdvisoryBeta = (headers: HeaderList): boolean => betasOf(headers).some(beta => ADVISORY.test(beta))

/** The headers without the betas that a host may do without. */
function withoutAdvisoryBetas(headers: HeaderList): HeaderList {
  return headers.flatMap(([name, value]): HeaderList => {
    if (name.toLowerCase() !== BETAS) return [[name, value]]
    const kept = betasOf([[name, value]]).filter(beta => !ADVISORY.test(beta))
    return kept.length === 0 ? [] : [[name, kept.join(',')]]
  })
}

const encoder = new TextEncoder()

/**
 * The body with the bytes of one string literal replaced; every byte outside the literal stays as it was. The body itself where the
 * literal says the name already, byte for byte.
 */
export function spliceModel(body: Uint8Array, literal: Span, wireName: string): Uint8Array {
  const name = encoder.encode(JSON.stringify(wireName))
  if (isAt(body, literal, name)) return body
  const out = new Uint8Array(body.length - (literal.end - literal.start) + name.length)
  out.set(body.subarray(0, literal.start))
  out.set(name, literal.start)
  out.set(body.subarray(literal.end), literal.start + name.length)
  return out
}

function isAt(body: Uint8Array, { start, end }: Span, name: Uint8Array): boolean {
  if (end - start !== name.length) return false
  for (let i = 0; i < name.length; i += 1) if (body[start + i] !== name[i]) return false
  return true
}
