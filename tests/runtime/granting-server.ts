import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An MCP server and its authorization server in one, that grants whatever it is asked for; nothing of it is checked. */
export async function grantingServer() {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', origin)
    const say = (status: number, body: object, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    switch (pathname) {
      case '/.well-known/oauth-protected-resource/mcp':
        return say(200, { resource: `${origin}/mcp`, authorization_servers: [origin] })
      case '/.well-known/oauth-authorization-server':
        return say(200, {
          issuer: origin,
          authorization_endpoint: `${origin}/auth`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          code_challenge_methods_supported: ['S256'],
        })
      case '/register':
        return say(201, { client_id: 'registered', client_secret: 'of-the-registered' })
      case '/token':
        return say(200, { access_token: 'granted-token', token_type: 'bearer', refresh_token: 'granted-refresh' })
      default:
        return say(401, {}, { 'www-authenticate': 'Bearer' })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${origin}/mcp`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
