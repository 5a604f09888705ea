import type { Context } from 'hono'
import { setCookie } from 'hono/cookie'
import { ApiError } from '../../../shared/http/api-error.ts'
import { readAtMost } from '../../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { toBase64Url } from '../../../shared/sign/bytes.ts'
import { equalSecrets, sha256Hex } from '../../../shared/sign/sha256.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import { type ConnectorId, connectorIds, isConnector } from '../../../shared/wire/runtime/catalog.ts'
import type { OAuthStarted } from '../../../shared/wire/runtime/connector.ts'
import type { Principal } from '../../http/http-env.ts'
import { notFound } from '../../http/own-tenant.ts'
import { type Sealing, vaultToStore } from '../../vault/vault.ts'
import { invalid } from '../config.ts'
import type { Install } from '../install.ts'
import { VendorFailure } from '../vendor-failure.ts'
import type { OAuthClients } from './clients.ts'
import { CALLBACK, COOKIE, cookieAt } from './cookie.ts'
import { aadOf, MCP, type RoundStore } from './rounds.ts'
import type { Granted, TokenCalls } from './token-calls.ts'
import { type OAuthClient, type OAuthVendor, type OtherHome, vendorAt } from './vendors.ts'

export interface ConsentDeps {
  rounds: RoundStore
  calls: TokenCalls
  clients: OAuthClients
  homes: Readonly<Partial<Record<string, OtherHome>>>
  sealing: Sealing
  clock: Clock
  fetch: EgressClient['fetch']
  /** Installs what a vendor granted, in place of what was there. */
  installGranted: (
    tenantId: string,
    connectorId: ConnectorId,
    granted: { values: Readonly<Record<string, string>>; expiresMs: number | undefined; baseUrl: string | undefined },
  ) => Promise<Install>
  /** Keeps what an MCP server's authorization server granted. */
  keepGrant: (tenantId: string, target: McpTarget, granted: Granted) => Promise<{ id: string }>
}

/** An MCP server, its authorization server, and what this installation is called there. */
export interface McpTarget {
  /** The address of the MCP server. */
  resource: string
  vendor: OAuthVendor
  client: OAuthClient
}

interface Way {
  redirectAfter: string | undefined
  origin: string
  inBrowser: boolean
}

/** What a round knows until its browser comes back. */
interface Sealed {
  verifier: string
  redirectUri: string
  redirectAfter: string
  /** For an MCP server: what it was found to need. */
  target?: McpTarget
  /** Of the cookie that the browser got in which it began; a program has none. */
  browserHash?: string
}

export interface StartedConsent {
  redirectUrl: string
  state: string
  expiresMs: number
  /** For a cookie of the browser that began. */
  browser: string | undefined
}

export interface Returned {
  tenantId: string
  starter: string
  /** Where the browser goes now. */
  location: string
  /** The id of what was granted. */
  object: string | undefined
  /** Why nothing was granted, where a person is to see that on a page. */
  failure?: VendorFailure
}

const LIFE_MS = 10 * 60_000
const AFTER = '/ui/connectors'
const SITES_MS = 30_000
const MOST_BYTES = 256 * 1024

export type Consent = ReturnType<typeof consent>

/** OAuth by a browser: to the vendor's page, and back with a code that becomes an install (docs/spec/runtime.md §8). */
export function consent(deps: ConsentDeps) {
  const { rounds, calls, homes, sealing, clock, installGranted, keepGrant } = deps

  return {
    begin(
      principal: Principal,
      { connectorId, ...way }: Way & { connectorId: string | undefined },
    ): Promise<StartedConsent> {
      return enter(deps, principal, way, vendorOf(deps, connectorId))
    },

    beginMcp(principal: Principal, target: McpTarget, way: Way): Promise<StartedConsent> {
      return enter(deps, principal, way, { connectorId: MCP, vendor: target.vendor, client: target.client, target })
    },

    /** The browser is back. Whatever it brings, its state is used up. */
    async finish(query: URLSearchParams, browser: string | undefined): Promise<Returned> {
      const state = query.get('state') ?? ''
      const round = state === '' ? undefined : await rounds.end(sha256Hex(state))
      if (!round || round.expiresMs <= clock.now().getTime()) throw badState()
      const { tenantId, connectorId, starter, stateHash } = round
      const vault = await vaultToStore(sealing, 'a credential')
      const kept = readJson(await vault.open(round.sealed, aadOf(tenantId, stateHash))) as Sealed
      if (kept.browserHash !== undefined && !equalSecrets(kept.browserHash, sha256Hex(browser ?? ''))) throw badState()
      const after = `${kept.redirectAfter}${kept.redirectAfter.includes('?') ? '&' : '?'}connector=${connectorId}`
      const back = (status: string, object?: string): Returned => ({
        tenantId,
        starter,
        object,
        location: `${after}&status=${status}`,
      })
      if (query.has('error')) return back('denied')
      if (!query.has('code')) throw invalid([{ path: 'code', message: 'Required' }])
      const { redirectUri, verifier, target } = kept
      const way = { query, state, redirectUri, verifier }
      try {
        if (connectorId === MCP) {
          if (!target) throw badState()
          const granted = await calls.exchange(target.vendor, target.client, way)
          return back('installed', (await keepGrant(tenantId, target, granted)).id)
        }
        const { vendor, client } = vendorOf(deps, connectorId)
        const granted = await calls.exchange(vendor, client, way)
        const { expiresInMs } = granted
        const install = await installGranted(tenantId, connectorId, {
          values: await valuesOf(deps, connectorId, granted),
          expiresMs: expiresInMs === undefined ? undefined : clock.now().getTime() + expiresInMs,
          baseUrl: homes[connectorId]?.api,
        })
        return back('installed', install.id)
      } catch (error) {
        if (kept.browserHash === undefined || !(error instanceof VendorFailure)) throw error
        return { ...back('failed'), failure: error }
      }
    },
  }
}

function vendorOf(deps: ConsentDeps, id: string | undefined) {
  if (id === undefined) throw invalid([{ path: 'connectorId', message: 'Required' }])
  if (!isConnector(id)) {
    throw new ApiError(
      'not_found',
      `${notFound('connector', id).message}; the catalogue has ${connectorIds.join(', ')}`,
    )
  }
  const vendor = vendorAt(id, deps.homes[id])
  if (!vendor) {
    const message = `${id} has no OAuth here: install it with its own credentials (POST /v1/connectors/install)`
    throw invalid([{ path: 'connectorId', message }])
  }
  const client = deps.clients.get(vendor.client)
  if (!client) {
    const message = `no OAuth client is set up for ${id}: set PLATFORM_OAUTH_${vendor.client}_CLIENT_ID`
    throw invalid([{ path: 'connectorId', message }])
  }
  return { connectorId: id, vendor, client }
}

/** What a vendor's tokens need beside them before anything can be called. */
async function valuesOf(deps: ConsentDeps, connectorId: ConnectorId, { accessToken, refreshToken, extras }: Granted) {
  return {
    accessToken,
    grant: 'authorization_code',
    ...(refreshToken !== undefined && { refreshToken }),
    ...(connectorId === 'salesforce' && { instanceUrl: String(extras.instance_url ?? '') }),
    ...(connectorId === 'jira' && { cloudId: await siteOf(deps, accessToken) }),
  }
}

/** Atlassian's tokens are for a person; which site is meant is asked for. */
async function siteOf(deps: ConsentDeps, accessToken: string): Promise<string> {
  const url = new URL(`${deps.homes.jira?.api ?? 'https://api.atlassian.com'}/oauth/token/accessible-resources`)
  const headers = { accept: 'application/json', 'user-agent': 'waybill', authorization: `Bearer ${accessToken}` }
  const answer = await deps.fetch(url, { headers, signal: AbortSignal.timeout(SITES_MS) })
  const { body } = await readAtMost(answer, MOST_BYTES)
  const sites: unknown = answer.ok ? readJson(new TextDecoder().decode(body)) : []
  const ids = Array.isArray(sites) ? sites.map((site: { id?: unknown }) => site.id) : []
  const found = ids.find(id => typeof id === 'string' && id !== '')
  if (typeof found === 'string') return found
  throw new VendorFailure({ message: 'Atlassian names no Jira site that this consent is for', declined: true })
}

async function enter(
  deps: ConsentDeps,
  { tenantId, keyId }: Principal,
  { redirectAfter = AFTER, origin, inBrowser }: Way,
  to: { connectorId: ConnectorId | typeof MCP; vendor: OAuthVendor; client: OAuthClient; target?: McpTarget },
): Promise<StartedConsent> {
  checkPath(redirectAfter)
  const vault = await vaultToStore(deps.sealing, 'a credential')
  const state = random()
  const stateHash = sha256Hex(state)
  const browser = inBrowser ? random() : undefined
  const redirectUri = callbackAt(origin)
  const { url, verifier } = await deps.calls.consent(to.vendor, to.client, { redirectUri, state })
  const kept: Sealed = {
    verifier,
    redirectUri,
    redirectAfter,
    ...(to.target && { target: to.target }),
    ...(browser !== undefined && { browserHash: sha256Hex(browser) }),
  }
  const nowMs = deps.clock.now().getTime()
  const expiresMs = nowMs + LIFE_MS
  const sealed = await vault.seal(JSON.stringify(kept), aadOf(tenantId, stateHash))
  const { connectorId } = to
  await deps.rounds.begin({ stateHash, tenantId, connectorId, starter: keyId, sealed, expiresMs }, nowMs)
  return { redirectUrl: url, state, expiresMs, browser }
}

function random(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(32)))
}

/** Where vendors send browsers back to. */
export const callbackAt = (origin: string): string => `${origin}${CALLBACK}`

export function checkPath(path: string): void {
  if (isOwnPath(path)) return
  throw invalid([{ path: 'redirectAfter', message: 'expected a path of this service, such as /ui/connectors' }])
}

function badState(): ApiError<'validation_failed'> {
  return new ApiError('validation_failed', 'this return link is unknown, already used or expired: connect again', {
    details: [{ path: 'state', message: 'expected the state of a round that was started here within 10 minutes' }],
  })
}

/** A path and not an address: `//host` and `/\host` are addresses to a browser. */
export function isOwnPath(path: string): boolean {
  return /^\/(?![/\\])[\x21-\x7e]*$/.test(path) && !path.includes('\\') && !path.includes('#')
}

/** Answers the start of a consent: where the browser goes now, and the cookie that binds the round to it. */
export function consentStarted(
  context: Context,
  { redirectUrl, state, expiresMs, browser }: StartedConsent,
  origin: string,
): OAuthStarted {
  if (browser !== undefined) setCookie(context, COOKIE, browser, { ...cookieAt(origin), maxAge: 600 })
  context.header('cache-control', 'no-store')
  return { redirectUrl, state, expiresAt: new Date(expiresMs).toISOString() }
}
