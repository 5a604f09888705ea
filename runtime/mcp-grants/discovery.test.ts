import { describe, expect, it } from 'vitest'
import type { EgressInit } from '../../shared/http/outbound/egress-client.ts'
import { discovery } from './discovery.ts'

const URL_OF_IT = 'https://mcp.example/a/mcp'
const RESOURCE = 'https://mcp.example/.well-known/oauth-protected-resource'
const ISSUER = 'https://login.example/tenant'
const resource = { resource: URL_OF_IT, authorization_servers: [ISSUER], scopes_supported: ['notes'] }
const server = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/auth`,
  token_endpoint: `${ISSUER}/token`,
  registration_endpoint: `${ISSUER}/register`,
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none'],
}
const challenge = (more = '') => ({ status: 401, headers: { 'www-authenticate': `Bearer realm="x"${more}` } })
type Answer = { status?: number; headers?: Record<string, string>; body?: unknown }

const usual: Record<string, Answer> = {
  [`POST ${URL_OF_IT}`]: challenge(),
  [`GET ${RESOURCE}/a/mcp`]: { body: resource },
  'GET https://login.example/.well-known/oauth-authorization-server/tenant': { body: server },
  [`POST ${ISSUER}/register`]: { status: 201, body: { client_id: 'registered' } },
}

async function found(changed: Record<string, Answer | undefined>, more: object = {}) {
  const answers = { ...usual, ...changed }
  const sent: { what: string; init: EgressInit }[] = []
  const { targetOf } = discovery({
    async fetch(url, init) {
      const what = `${init.method ?? 'GET'} ${url.href}`
      sent.push({ what, init })
      const { status = 200, headers, body } = answers[what] ?? { status: 404 }
      return new Response(JSON.stringify(body ?? {}), { status, ...(headers && { headers }) })
    },
    problem: async ({ hostname }) => (hostname.endsWith('.internal') ? `${hostname} is private` : undefined),
  })
  const redirectUri = 'https://here.example/auth/connectors/callback'
  const target = await targetOf({
    url: new URL(URL_OF_IT),
    scope: undefined,
    client: undefined,
    redirectUri,
    ...more,
  })
  return {
    target,
    sent: sent.map(({ what }) => what),
    body: (n: number) => JSON.parse(String(sent[n]!.init.body)) as unknown,
  }
}

describe('what an MCP server needs', () => {
  it('is found by its well-known places, and this service registers there', async () => {
    const { target, sent, body } = await found({})
    expect(sent).toEqual(Object.keys(usual))
    expect(target).toEqual({
      resource: URL_OF_IT,
      client: { id: 'registered' },
      scope: 'notes',
      vendor: {
        client: 'MCP',
        issuer: ISSUER,
        authorization: `${ISSUER}/auth`,
        token: `${ISSUER}/token`,
        scopes: ['notes'],
        resource: URL_OF_IT,
      },
    })
    expect(body(3)).toEqual({
      client_name: 'waybill',
      redirect_uris: ['https://here.example/auth/connectors/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      scope: 'notes',
      application_type: 'web',
    })
  })

  it('is found where the challenge says, with the scope that it says', async () => {
    const named = 'https://mcp.example/elsewhere'
    const { target, sent } = await found({
      [`POST ${URL_OF_IT}`]: challenge(`, resource_metadata="${named}", scope="read"`),
      [`GET ${named}`]: { body: { ...resource, resource: 'https://mcp.example/' } },
    })
    expect(sent).toContain(`GET ${named}`)
    expect([target.scope, target.vendor.resource]).toEqual(['read', 'https://mcp.example/'])
  })

  it('is found as OpenID has it, and asks for a consent that gives refresh tokens', async () => {
    const { target } = await found({
      'GET https://login.example/.well-known/oauth-authorization-server/tenant': undefined,
      [`GET ${ISSUER}/.well-known/openid-configuration`]: { body: { ...server, scopes_supported: ['offline_access'] } },
    })
    expect(target.vendor).toMatchObject({ scopes: ['notes', 'offline_access'], extra: { prompt: 'consent' } })
  })

  it('is not asked for a name where one was given, whose secret goes where the server takes it', async () => {
    const methods = { ...server, token_endpoint_auth_methods_supported: ['client_secret_basic'] }
    const client = { id: 'mine', secret: 's' }
    const place = 'GET https://login.example/.well-known/oauth-authorization-server/tenant'
    const { target, sent } = await found({ [place]: { body: methods } }, { client, scope: 'all' })
    expect(sent).not.toContain(`POST ${ISSUER}/register`)
    expect(target).toMatchObject({ client, scope: 'all', vendor: { secretIn: 'header' } })
  })

  const metadata = 'GET https://login.example/.well-known/oauth-authorization-server/tenant'
  it.each<[Record<string, Answer | undefined>, string]>([
    [
      { [`POST ${URL_OF_IT}`]: { status: 200, headers: { 'mcp-session-id': 's' } } },
      'asks for no OAuth: it answered 200',
    ],
    [{ [`GET ${RESOURCE}/a/mcp`]: { body: { resource: 7 } } }, 'is no metadata of a protected resource'],
    [
      { [`GET ${RESOURCE}/a/mcp`]: { body: { ...resource, resource: 'https://other.example/' } } },
      'is about https://other.example/',
    ],
    [
      { [`GET ${RESOURCE}/a/mcp`]: { body: { ...resource, resource: 'https://mcp.example/b' } } },
      'is about https://mcp.example/b',
    ],
    [{ [`GET ${RESOURCE}/a/mcp`]: { body: { resource: URL_OF_IT } } }, 'names no authorization server'],
    [
      { [`POST ${URL_OF_IT}`]: challenge(', resource_metadata="https://mcp.example/none"') },
      'names metadata that are not there',
    ],
    [{ [metadata]: undefined }, 'has no metadata of an authorization server'],
    [{ [metadata]: { body: { ...server, issuer: 'https://evil.example' } } }, 'is about https://evil.example'],
    [{ [metadata]: { body: { ...server, code_challenge_methods_supported: ['plain'] } } }, 'PKCE with S256'],
    [
      { [metadata]: { body: { ...server, token_endpoint: 'javascript:1' } } },
      'is no metadata of an authorization server',
    ],
    [{ [metadata]: { body: { ...server, token_endpoint: 'https://db.internal/token' } } }, 'db.internal is private'],
    [{ [metadata]: { body: { ...server, registration_endpoint: undefined } } }, 'allows no registration'],
    [
      { [`GET ${RESOURCE}/a/mcp`]: { body: { ...resource, authorization_servers: ['http://login.example/tenant'] } } },
      'not called over https: http://login.example/tenant',
    ],
    ...['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'].map(
      (name): [Record<string, Answer>, string] => [
        { [metadata]: { body: { ...server, [name]: 'http://login.example/x' } } },
        'not called over https: http://login.example/x',
      ],
    ),
    [{ [`POST ${ISSUER}/register`]: { status: 400, body: { error: 'invalid_redirect_uri' } } }, 'invalid_redirect_uri'],
  ])('is not made up: %#', async (changed, message) => {
    await expect(found(changed)).rejects.toThrow(message)
  })
})
