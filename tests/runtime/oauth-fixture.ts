import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { OtherHome } from '../../runtime/connectors/oauth/vendors.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { OAuthStarted } from '../../shared/wire/runtime/connector.ts'
import { api } from './api.ts'

const SCOPES = ['calendar.readonly', 'gmail.modify'].map(scope => `https://www.googleapis.com/auth/${scope}`)
export const CLIENT = { id: 'waybill-test', secret: 'the-secret-of-the-client' }
export const CALLBACK = 'http://localhost/auth/connectors/callback'

interface GrantContext {
  oidc: {
    client: { clientId: string }
    session: { accountId: string }
    provider: { Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> } }
  }
}

/** A real authorization server with an API behind it that takes its tokens: PKCE required, refresh tokens rotated. */
export async function authorizationServer(callback = CALLBACK, tokenSeconds = 3600) {
  let declining = false
  const seen = { refreshes: 0, exchanges: 0, revocations: 0, tokens: new Set<string>(), refreshTokens: [] as string[] }
  let handle: ReturnType<Provider['callback']> = () => undefined
  let provider: Provider | undefined
  const server = createServer(async (request, response) => {
    const { url = '/', headers } = request
    if (url.startsWith('/interaction/')) {
      const said = declining
        ? { error: 'access_denied', error_description: 'she would rather not' }
        : { login: { accountId: 'alice' }, consent: {} }
      return provider!.interactionFinished(request, response, said)
    }
    if (url.startsWith('/calendar/')) {
      const token = (headers.authorization ?? '').replace('Bearer ', '')
      seen.tokens.add(token)
      const known = await provider!.AccessToken.find(token)
      response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' })
      return response.end(known ? '{"items":[]}' : '{"error":{"message":"Invalid Credentials"}}')
    }
    if (url === '/token/revocation') seen.revocations++
    handle(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  provider = new Provider(origin, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [callback],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    scopes: ['openid', ...SCOPES],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    async loadExistingGrant({ oidc }: GrantContext) {
      const { clientId } = oidc.client
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope(SCOPES.join(' '))
      await grant.save()
      return grant
    },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    ttl: { AccessToken: tokenSeconds, RefreshToken: 86_400, Grant: 86_400, Session: 86_400, Interaction: 600 },
    cookies: { keys: ['for tests'] },
  })
  provider.on(
    'grant.success',
    (context: { oidc: { params: { grant_type: string } }; body: { refresh_token?: string } }) => {
      if (context.oidc.params.grant_type === 'refresh_token') seen.refreshes++
      else seen.exchanges++
      if (context.body.refresh_token !== undefined) seen.refreshTokens.push(context.body.refresh_token)
    },
  )
  handle = provider.callback()
  const home: OtherHome = {
    issuer: origin,
    authorization: `${origin}/auth`,
    token: `${origin}/token`,
    revocation: `${origin}/token/revocation`,
    api: origin,
  }
  return {
    origin,
    home,
    seen,
    browse: (address: string) => browse(origin, address),
    /** What the person who is asked for consent answers from now on. */
    decline(is: boolean) {
      declining = is
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** What a browser does with the address of a consent page: follows it until it leaves this server. */
export async function browse(origin: string, address: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let at = new URL(address)
  for (let hops = 0; at.origin === origin; hops++) {
    if (hops === 20) throw new Error(`going round in circles at ${at.href}`)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(at, { redirect: 'manual', headers: { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    if (location === null) throw new Error(`${at.href}: ${answer.status} ${await answer.text()}`)
    at = new URL(location, at)
  }
  return at
}

export type AuthorizationServer = Awaited<ReturnType<typeof authorizationServer>>

/** A runtime for which Google is this server. */
export async function oauthFixture(at: AuthorizationServer, options: Partial<RuntimeOptions> & { url?: string } = {}) {
  let ahead = 0
  const egress = nodeEgress({ rule: outboundRule([readAllowEntry(new URL(at.origin).host)!]) })
  const made = await api({
    egress,
    masterKey: new Uint8Array(32).fill(9),
    oauthClients: new Map([['GOOGLE', CLIENT]]),
    oauthHomes: { 'google-calendar': at.home },
    clock: { ...systemClock, now: () => new Date(Date.now() + ahead) },
    ...options,
  })
  const { json, call } = made
  const connectorId = 'google-calendar'
  const begin = (more: object = {}) =>
    json<OAuthStarted>(200, 'POST', '/v1/connectors/oauth/start', { connectorId, ...more })
  const back = (query: string) => made.runtime.fetch(new Request(`${CALLBACK}${query}`, { redirect: 'manual' }))
  return {
    ...made,
    begin,
    back,
    /** Goes to the vendor's page and back. */
    async connect(more: object = {}) {
      const { redirectUrl } = await begin(more)
      return back((await at.browse(redirectUrl)).search)
    },
    list: () => call('GET', `/v1/connectors/${connectorId}/execute?action=list_events`),
    pass(ms: number) {
      ahead += ms
    },
    async close() {
      await made.close()
      await egress.close()
    },
  }
}
