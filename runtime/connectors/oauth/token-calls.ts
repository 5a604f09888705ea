import type * as oauth4webapi from 'oauth4webapi'
import { readAtMost } from '../../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { VendorFailure } from '../vendor-failure.ts'
import { basicOf, type OAuthClient, type OAuthVendor, type Tokens } from './vendors.ts'

/** What a vendor gave; `beside` is whatever else stands in its answer. */
export interface Granted extends Tokens {
  expiresInMs: number | undefined
  extras: Readonly<Record<string, unknown>>
}

const OWN_HEADERS = { accept: 'application/json', 'user-agent': 'waybill' }
const DEADLINE_MS = 30_000
const REVOKE_MS = 5000
const MOST_BYTES = 256 * 1024
/** A hundred years. A token that is said to live longer has no end that is known. */
const LONGEST_S = 100 * 365 * 86_400
/** Answers of a token endpoint that no later try turns into others. */
const FOR_GOOD = new Set([
  ...['invalid_grant', 'invalid_client', 'unauthorized_client', 'bad_refresh_token', 'bad_verification_code'],
  ...['invalid_refresh_token', 'token_expired', 'token_revoked', 'incorrect_client_credentials', 'invalid_code'],
  ...['invalid_client_id', 'bad_client_secret'],
])

export type TokenCalls = ReturnType<typeof tokenCalls>

/** Every request to a vendor's authorization server; nothing that belongs to one vendor is sent to another. */
export function tokenCalls({ fetch }: Pick<EgressClient, 'fetch'>) {
  return {
    /** The page on which a person agrees, and the verifier that only this installation knows. */
    async consent(
      vendor: OAuthVendor,
      client: OAuthClient,
      { redirectUri, state }: { redirectUri: string; state: string },
    ) {
      const oauth = await import('oauth4webapi')
      const verifier = oauth.generateRandomCodeVerifier()
      const url = new URL(vendor.authorization)
      const parameters = {
        client_id: client.id,
        redirect_uri: redirectUri,
        response_type: 'code',
        state,
        ...(vendor.scopes.length > 0 && { scope: vendor.scopes.join(vendor.separator ?? ' ') }),
        ...vendor.extra,
        ...(vendor.resource !== undefined && { resource: vendor.resource }),
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      return { url: url.href, verifier }
    },

    /** Turns the code that a browser brought into tokens. */
    exchange(
      vendor: OAuthVendor,
      given: OAuthClient,
      {
        query,
        state,
        redirectUri,
        verifier,
      }: Record<'state' | 'redirectUri' | 'verifier', string> & { query: URLSearchParams },
    ): Promise<Granted> {
      return asking(fetch, vendor, given, DEADLINE_MS, async (oauth, { client, auth, options, extras }) => {
        const server = serverOf(vendor)
        const came = new URLSearchParams(query)
        // A state belongs to one vendor, so only one that has told its name is held to it.
        if (vendor.issuer === undefined) came.delete('iss')
        const checked = oauth.validateAuthResponse(server, client, came, state)
        const answer = await oauth.authorizationCodeGrantRequest(server, client, auth, checked, redirectUri, verifier, {
          ...options,
          ...audienceOf(vendor),
        })
        return granted(await oauth.processGenericTokenEndpointResponse(server, client, answer), extras())
      })
    },

    refresh(vendor: OAuthVendor, given: OAuthClient, refreshToken: string): Promise<Granted> {
      return asking(fetch, vendor, given, DEADLINE_MS, async (oauth, { client, auth, options, extras }) => {
        const server = serverOf(vendor)
        const answer = await oauth.refreshTokenGrantRequest(server, client, auth, refreshToken, {
          ...options,
          ...audienceOf(vendor),
        })
        return granted(await oauth.processGenericTokenEndpointResponse(server, client, answer), extras())
      })
    },

    /** Gives tokens back, where the vendor takes them; whether it was told. */
    async revoke(vendor: OAuthVendor, given: OAuthClient, tokens: Tokens): Promise<boolean> {
      const own = vendor.revoke?.(tokens, given)
      if (own) {
        const { url, ...init } = own
        const headers = { ...OWN_HEADERS, ...vendor.headers, ...init.headers }
        const answer = await fetch(new URL(url), { ...init, headers, signal: AbortSignal.timeout(REVOKE_MS) })
        const { body } = await readAtMost(answer, MOST_BYTES)
        // Slack says no with 200.
        return answer.ok && parse(new TextDecoder().decode(body)).ok !== false
      }
      if (vendor.revocation === undefined) return false
      // The end of a refresh token ends what was made from it; an access token alone has to be named.
      const named = tokens.refreshToken ?? tokens.accessToken
      return asking(fetch, vendor, given, REVOKE_MS, async (oauth, { client, auth, options }) => {
        await oauth.processRevocationResponse(
          await oauth.revocationRequest(serverOf(vendor), client, auth, named, options),
        )
        return true
      })
    },
  }
}

/** Makes a call with everything that it needs of the library, and says in our words what went wrong. */
async function asking<T>(
  fetch: EgressClient['fetch'],
  { json, token, secretIn, headers: extra }: OAuthVendor,
  { id, secret }: OAuthClient,
  ms: number,
  ask: (oauth: typeof oauth4webapi, given: Given) => Promise<T>,
): Promise<T> {
  const oauth = await import('oauth4webapi')
  let extras: Record<string, unknown> = {}
  const signal = AbortSignal.timeout(ms)
  const options = {
    [oauth.allowInsecureRequests]: new URL(token).protocol === 'http:',
    signal: () => signal,
    async [oauth.customFetch](url: string, init: oauth4webapi.CustomFetchOptions<'POST', URLSearchParams>) {
      const headers = { ...init.headers, ...OWN_HEADERS, ...extra }
      const asJson = json === true && url === token
      const answer = await fetch(new URL(url), {
        method: 'POST',
        signal,
        headers: asJson ? { ...headers, 'content-type': 'application/json' } : headers,
        body: asJson ? JSON.stringify(Object.fromEntries(init.body)) : init.body.toString(),
      })
      if (url !== token) return answer
      const read = await plainAnswer(answer)
      extras = read.extras
      return read.answer
    },
  }
  const auth =
    secret === undefined
      ? oauth.None()
      : secretIn === 'header'
        ? inHeader({ id, secret })
        : oauth.ClientSecretPost(secret)
  try {
    return await ask(oauth, { client: { client_id: id }, auth, options, extras: () => extras })
  } catch (error) {
    throw toFailure(error, new URL(token).host)
  }
}

function serverOf(vendor: OAuthVendor): oauth4webapi.AuthorizationServer {
  return {
    issuer: vendor.issuer ?? new URL(vendor.authorization).origin,
    authorization_endpoint: vendor.authorization,
    token_endpoint: vendor.token,
    ...(vendor.revocation !== undefined && { revocation_endpoint: vendor.revocation }),
    ...(vendor.saysIssuer && { authorization_response_iss_parameter_supported: true }),
  }
}

/** As it is: RFC 6749 has both parts encoded first, which turns the dashes of an id into something that vendors do not read. */
function inHeader(client: OAuthClient): oauth4webapi.ClientAuth {
  return (_server, _client, _body, headers) => headers.set('authorization', basicOf(client))
}

const audienceOf = ({ resource }: OAuthVendor) => (resource === undefined ? {} : { additionalParameters: { resource } })

interface Given {
  client: oauth4webapi.Client
  auth: oauth4webapi.ClientAuth
  options: oauth4webapi.TokenEndpointRequestOptions
  extras: () => Record<string, unknown>
}

function granted(answer: oauth4webapi.TokenEndpointResponse, extras: Record<string, unknown>): Granted {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds } = answer
  const ends = seconds !== undefined && seconds <= LONGEST_S
  return { accessToken, refreshToken, expiresInMs: ends ? Math.floor(seconds * 1000) : undefined, extras }
}

/**
 * A token answer as the standard has it. Vendors answer errors with 200, put other words where `bearer` belongs, scopes as
 * lists and numbers as texts; of a sign-in nothing is wanted, so an id_token is left out.
 */
async function plainAnswer(answer: Response): Promise<{ answer: Response; extras: Record<string, unknown> }> {
  const { body } = await readAtMost(answer, MOST_BYTES)
  const parsed = parse(new TextDecoder().decode(body))
  const wrong = parsed.error !== undefined || parsed.ok === false
  const { access_token, refresh_token, expires_in, error, error_description, message, ...extras } = parsed
  const seconds = typeof expires_in === 'string' ? Number(expires_in) : expires_in
  const plain = wrong
    ? {
        error: typeof error === 'string' ? error : 'invalid_request',
        ...(typeof (error_description ?? message) === 'string' && { error_description: error_description ?? message }),
      }
    : {
        access_token,
        token_type: 'bearer',
        ...(typeof refresh_token === 'string' && refresh_token !== '' && { refresh_token }),
        // A life of no length would be a refresh before each call; a negative one has been said for a token without an end.
        ...(typeof seconds === 'number' && seconds > 0 && seconds < Infinity && { expires_in: seconds }),
      }
  const status = wrong && answer.ok ? 400 : answer.status
  const headers = { 'content-type': 'application/json' }
  return { answer: new Response(JSON.stringify(plain), { status, headers }), extras }
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = readJson(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** What the other side says may be shown: it has seen no secret that it could repeat but those of this very request. */
function toFailure(error: unknown, host: string): unknown {
  if (error instanceof VendorFailure) return error
  const { error: code, status } = error as { error?: unknown; status?: unknown }
  if (typeof code === 'string') {
    const message = `${host} said ${code.slice(0, 100)}`
    return new VendorFailure({
      message,
      refused: FOR_GOOD.has(code),
      declined: true,
      cause: error,
      ...(typeof status === 'number' && { status }),
    })
  }
  const why = error instanceof Error ? error.message : 'failed'
  return new VendorFailure({ message: `${host} gave no tokens: ${why}`, unreachable: true, cause: error })
}
