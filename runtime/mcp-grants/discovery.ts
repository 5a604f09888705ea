import { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { denialIn, readAtMost } from '../../shared/http/outbound/bounded-body.ts'
import type { EgressClient, EgressInit } from '../../shared/http/outbound/egress-client.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { VERSION } from '../../shared/version.ts'
import { invalid } from '../connectors/config.ts'
import type { McpTarget } from '../connectors/oauth/consent.ts'
import type { OAuthClient } from '../connectors/oauth/vendors.ts'

export interface DiscoveryDeps {
  fetch: EgressClient['fetch']
  problem: EgressClient['problem']
}

export interface DiscoveryRequest {
  url: URL
  scope: string | undefined
  client: OAuthClient | undefined
  redirectUri: string
}

const DEADLINE_MS = 15_000
const MOST_BYTES = 256 * 1024
const address = z.url({ protocol: /^https?$/ })
const words = z.array(z.string()).optional()
const resourceMetadata = z.object({
  resource: z.string(),
  authorization_servers: z.array(address).optional(),
  scopes_supported: words,
})
const serverMetadata = z.object({
  issuer: z.string(),
  authorization_endpoint: address,
  token_endpoint: address,
  registration_endpoint: address.optional(),
  revocation_endpoint: address.optional(),
  scopes_supported: words,
  code_challenge_methods_supported: words,
  token_endpoint_auth_methods_supported: words,
  authorization_response_iss_parameter_supported: z.boolean().optional(),
})
type ServerMetadata = z.output<typeof serverMetadata>
const registered = z.object({
  client_id: z.string().min(1),
  client_secret: z.string().optional(),
  token_endpoint_auth_method: z.string().optional(),
})

export type Discovery = ReturnType<typeof discovery>

/**
 * From the address of an MCP server to everything that a consent needs: the server is asked without a token, names its
 * metadata (RFC 9728), that names an authorization server, whose metadata (RFC 8414) names the rest; where no client id is
 * configured, this service registers (RFC 7591). Every address on the way follows the outbound rule.
 */
export function discovery({ fetch, problem }: DiscoveryDeps) {
  return {
    async targetOf({
      url,
      scope,
      client,
      redirectUri,
    }: DiscoveryRequest): Promise<McpTarget & { scope: string | undefined }> {
      const refused = await problem(url)
      if (refused !== undefined) throw invalid([{ path: 'url', message: refused }])
      const challenge = await challengeOf(fetch, url)
      const resource = await resourceOf(fetch, url, challenge)
      const issuer = resource.authorization_servers?.[0]
      if (issuer === undefined) throw failed(`${url.host} names no authorization server`)
      refusePlain(url, issuer)
      const server = await serverOf(fetch, issuer)
      const { authorization_endpoint, token_endpoint, revocation_endpoint, registration_endpoint } = server
      // A browser opens the one, this service the others; none may be where the rule does not let it.
      for (const one of [authorization_endpoint, token_endpoint, revocation_endpoint, registration_endpoint]) {
        if (one === undefined) continue
        refusePlain(url, one)
        const wrong = await problem(new URL(one))
        if (wrong !== undefined)
          throw invalid([{ path: 'url', message: `its authorization server is elsewhere: ${wrong}` }])
      }
      const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      const method = ['none', 'client_secret_post', 'client_secret_basic'].find(one => methods.includes(one)) ?? 'none'
      const offline = server.scopes_supported?.includes('offline_access') === true
      const asked = scope ?? challenge.scope ?? resource.scopes_supported?.join(' ')
      const scopes = [...new Set([...(asked?.split(' ') ?? []), ...(offline ? ['offline_access'] : [])])]
      const words = scopes.length === 0 ? undefined : scopes.join(' ')
      const known = client ?? (await register(fetch, server, { redirectUri, method, scope: words }))
      const inHeader = known.secret !== undefined && !methods.includes('client_secret_post')
      return {
        resource: url.href,
        client: known,
        scope: words,
        vendor: {
          client: 'MCP',
          issuer: server.issuer,
          authorization: server.authorization_endpoint,
          token: server.token_endpoint,
          scopes,
          resource: resource.resource,
          ...(server.revocation_endpoint !== undefined && { revocation: server.revocation_endpoint }),
          ...(server.authorization_response_iss_parameter_supported && { saysIssuer: true as const }),
          ...(inHeader && { secretIn: 'header' as const }),
          // OpenID has no refresh token without a consent that is seen.
          ...(offline && { extra: { prompt: 'consent' } }),
        },
      }
    },
  }
}

/** Codes and tokens of a server that is called over TLS do not leave without it. */
function refusePlain(server: URL, named: string): void {
  if (server.protocol === 'https:' && new URL(named).protocol !== 'https:')
    throw invalid([{ path: 'url', message: `its authorization server is not called over https: ${named}` }])
}

async function getJson(
  fetch: DiscoveryDeps['fetch'],
  url: URL,
  init: Partial<EgressInit> = {},
): Promise<{ status: number; headers: Headers; body: unknown }> {
  try {
    const headers = { accept: 'application/json', 'user-agent': 'waybill', ...init.headers }
    const answer = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(DEADLINE_MS) })
    const { body: bytes } = await readAtMost(answer, MOST_BYTES)
    return { status: answer.status, headers: answer.headers, body: parse(new TextDecoder().decode(bytes)) }
  } catch (error) {
    const denial = denialIn(error)
    if (denial) throw invalid([{ path: 'url', message: denial.message }])
    throw failed(`${url.host} could not be reached: ${error instanceof Error ? error.message : 'failed'}`, error)
  }
}

/** What the server says to a request without a token. */
async function challengeOf(fetch: DiscoveryDeps['fetch'], url: URL): Promise<Challenge> {
  const clientInfo = { name: 'waybill', version: VERSION }
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
  const { status, headers } = await getJson(fetch, url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  })
  if (status === 401) return bearerChallenge(headers.get('www-authenticate')) ?? {}
  const session = headers.get('mcp-session-id')
  if (session !== null)
    await getJson(fetch, url, { method: 'DELETE', headers: { 'mcp-session-id': session } }).catch(() => undefined)
  throw invalid([
    { path: 'url', message: `the server asks for no OAuth: it answered ${status} to a greeting without a token` },
  ])
}

async function resourceOf(fetch: DiscoveryDeps['fetch'], url: URL, { resourceMetadata: named }: Challenge) {
  const path = url.pathname === '/' ? '' : url.pathname
  const places =
    named === undefined ? [wellKnown(url, RESOURCE, path), wellKnown(url, RESOURCE, '')] : [URL.parse(named)]
  for (const place of places) {
    if (!place) throw failed(`${url.host} names metadata at what is no address`)
    const { status, body } = await getJson(fetch, place)
    if (status !== 200) continue
    const found = resourceMetadata.safeParse(body)
    if (!found.success) throw failed(`${place.href} is no metadata of a protected resource (RFC 9728)`)
    // A server that speaks for another could have tokens made for that one.
    if (!covers(found.data.resource, url))
      throw failed(`${place.href} is about ${found.data.resource.slice(0, 200)}, not this server`)
    return found.data
  }
  if (named !== undefined) throw failed(`${url.host} names metadata that are not there`)
  // Before the protected resource metadata came into the protocol, a server was its own authorization server.
  return { resource: url.href, authorization_servers: [url.origin], scopes_supported: undefined }
}

async function serverOf(fetch: DiscoveryDeps['fetch'], issuer: string): Promise<ServerMetadata> {
  const url = new URL(issuer)
  const path = url.pathname.replace(/\/$/, '')
  const places = [wellKnown(url, 'oauth-authorization-server', path), wellKnown(url, 'openid-configuration', path)]
  if (path !== '') places.push(new URL(`${url.origin}${path}/.well-known/openid-configuration`))
  for (const place of places) {
    const { status, body } = await getJson(fetch, place)
    if (status !== 200) continue
    const found = serverMetadata.safeParse(body)
    if (!found.success) throw failed(`${place.href} is no metadata of an authorization server (RFC 8414)`)
    if (found.data.issuer.replace(/\/$/, '') !== issuer.replace(/\/$/, '')) {
      throw failed(`${place.href} is about ${found.data.issuer.slice(0, 200)}, not ${issuer}`)
    }
    if (!found.data.code_challenge_methods_supported?.includes('S256')) {
      throw failed(`${issuer} does not say that it does PKCE with S256, without which no consent is started`)
    }
    return found.data
  }
  throw failed(`${issuer} has no metadata of an authorization server (RFC 8414)`)
}

async function register(
  fetch: DiscoveryDeps['fetch'],
  server: ServerMetadata,
  { redirectUri, method, scope }: { redirectUri: string; method: string; scope: string | undefined },
): Promise<OAuthClient> {
  const { registration_endpoint: endpoint, issuer } = server
  if (endpoint === undefined) {
    const message = `${issuer} allows no registration: create a client there with the callback ${redirectUri} and give its clientId`
    throw invalid([{ path: 'clientId', message }])
  }
  const { status, body } = await getJson(fetch, new URL(endpoint), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'waybill',
      redirect_uris: [redirectUri],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: method,
      // Servers of the Python SDK give a client no scope that it was not registered with.
      ...(scope !== undefined && { scope }),
      // A web client has to have https, which this machine alone has not.
      application_type: redirectUri.startsWith('http:') ? 'native' : 'web',
    }),
  })
  const found = registered.safeParse(body)
  if (found.success && (status === 200 || status === 201)) {
    const { client_id: id, client_secret: secret } = found.data
    return { id, ...(secret !== undefined && { secret }) }
  }
  const { error, error_description: why } = body as { error?: unknown; error_description?: unknown }
  const said = [error, why]
    .filter(one => typeof one === 'string')
    .join(': ')
    .slice(0, 300)
  throw failed(`${issuer} did not register this service (${status}) ${said}`.trim())
}

const RESOURCE = 'oauth-protected-resource'

const wellKnown = ({ origin }: URL, name: string, path: string) => new URL(`${origin}/.well-known/${name}${path}`)

/** The very address, or a place above it on the same origin. */
function covers(resource: string, url: URL): boolean {
  const of = URL.parse(resource)
  if (of?.origin !== url.origin) return false
  const above = of.pathname.replace(/\/$/, '')
  return url.pathname === above || url.pathname.startsWith(`${above}/`)
}

function failed(message: string, cause?: unknown): ApiError<'upstream_failed'> {
  return new ApiError('upstream_failed', message.toWellFormed(), { cause })
}

function parse(text: string): unknown {
  try {
    const value: unknown = readJson(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** What a server says of the tokens that it wants: the parameters of its Bearer challenge (RFC 9110, RFC 6750, RFC 9728). */
interface Challenge {
  resourceMetadata?: string
  scope?: string
}

const BEARER = /(?:^|,)\s*Bearer(?:\s+|$)/i
const PARAMETER = /^\s*(?:,\s*)?([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/

/** Undefined where no Bearer token is asked for. */
export function bearerChallenge(header: string | null): Challenge | undefined {
  const found = BEARER.exec(header ?? '')
  if (!found) return undefined
  const challenge: Challenge = {}
  let rest = header!.slice(found.index + found[0].length)
  // What is no parameter begins the challenge of another scheme.
  for (let next = PARAMETER.exec(rest); next; next = PARAMETER.exec(rest)) {
    const [all, name = '', quoted, plain = ''] = next
    const value = quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
    if (name.toLowerCase() === 'resource_metadata') challenge.resourceMetadata ??= value
    if (name.toLowerCase() === 'scope') challenge.scope ??= value
    rest = rest.slice(all.length)
  }
  return challenge
}
