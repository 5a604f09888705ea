import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js'
import { mcpAuthMetadataRouter } from '@modelcontextprotocol/sdk/server/auth/router.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import express from 'express'
import { Provider } from 'oidc-provider'
import { z } from 'zod'

const SCOPES = ['openid', 'offline_access', 'notes']

interface Context {
  oidc: {
    client: { clientId: string }
    session: { accountId: string }
    provider: {
      Grant: new (
        of: object,
      ) => {
        addOIDCScope(scope: string): void
        addResourceScope(resource: string, scope: string): void
        save(): Promise<string>
      }
    }
  }
}

async function listening(server: ReturnType<typeof createServer>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/**
 * A server of the MCP SDK that takes tokens of a real authorization server only: made for it, alive, and with its scope. The
 * authorization server registers every client, wants PKCE and rotates refresh tokens.
 */
export async function demandingServer() {
  const seen = {
    refuses: false,
    registrations: 0,
    exchanges: 0,
    refreshes: 0,
    revocations: 0,
    calls: 0,
    tokens: new Set<string>(),
  }
  let provider: Provider | undefined
  let handle: ReturnType<Provider['callback']> = () => undefined
  const authority = createServer((request, response) => {
    if (request.url?.startsWith('/interaction/')) {
      void provider!.interactionFinished(request, response, { login: { accountId: 'alice' }, consent: {} })
      return
    }
    if (request.url === '/token' && seen.refuses) {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
      return
    }
    if (request.url === '/reg') seen.registrations++
    if (request.url === '/token/revocation') seen.revocations++
    handle(request, response)
  })
  const issuer = await listening(authority)
  const app = express()
  const server = createServer((request, response) => void app(request, response))
  const origin = await listening(server)
  const url = `${origin}/mcp`

  provider = new Provider(issuer, {
    scopes: SCOPES,
    pkce: { required: () => true },
    rotateRefreshToken: true,
    clients: [],
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: 'notes',
          audience: resource,
          accessTokenFormat: 'opaque',
          accessTokenTTL: 3600,
        }),
        useGrantedResource: () => true,
      },
    },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    async loadExistingGrant({ oidc }: Context) {
      const { clientId } = oidc.client
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope(SCOPES.join(' '))
      grant.addResourceScope(url, 'notes')
      await grant.save()
      return grant
    },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    ttl: { AccessToken: 3600, RefreshToken: 86_400, Grant: 86_400, Session: 86_400, Interaction: 600 },
    cookies: { keys: ['for tests'] },
  })
  provider.on('grant.success', (context: { oidc: { params: { grant_type: string } } }) => {
    if (context.oidc.params.grant_type === 'refresh_token') seen.refreshes++
    else seen.exchanges++
  })
  handle = provider.callback()

  const resourceServerUrl = new URL(url)
  app.use(
    mcpAuthMetadataRouter({
      resourceServerUrl,
      scopesSupported: ['notes'],
      oauthMetadata: {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        response_types_supported: ['code'],
      },
    }),
  )
  const verifier = {
    async verifyAccessToken(token: string) {
      const found = await provider.AccessToken.find(token)
      if (found?.aud !== url) throw new InvalidTokenError('not a token for this server')
      seen.tokens.add(token)
      const { clientId = '', scope = '', exp = 0 } = found
      return { token, clientId, scopes: scope.split(' '), expiresAt: exp }
    },
  }
  const bearer = requireBearerAuth({
    verifier,
    requiredScopes: ['notes'],
    resourceMetadataUrl: `${origin}/.well-known/oauth-protected-resource/mcp`,
  })
  app.use('/mcp', bearer, express.json(), async (request, response) => {
    const mcp = new McpServer({ name: 'notes', version: '1' })
    const annotations = { readOnlyHint: false }
    mcp.registerTool('note', { inputSchema: { text: z.string() }, annotations }, async ({ text }) => {
      seen.calls++
      return { content: [{ type: 'text', text: `noted ${text} for ${request.headers.authorization}` }] }
    })
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    await mcp.connect(transport as Transport)
    await transport.handleRequest(request, response, request.body)
  })

  return {
    url,
    origin,
    issuer,
    seen,
    /** The server takes none of its tokens any more. */
    async forget() {
      for (const token of seen.tokens) await (await provider.AccessToken.find(token))?.destroy()
    },
    async close() {
      for (const one of [server, authority]) {
        one.closeAllConnections()
        one.close()
        await once(one, 'close')
      }
    },
  }
}
