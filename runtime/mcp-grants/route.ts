import { Hono } from 'hono'
import { setCookie } from 'hono/cookie'
import { jsonBody } from '../../shared/http/validate.ts'
import type { OAuthStarted } from '../../shared/wire/runtime/connector.ts'
import { pageQuery } from '../../shared/wire/runtime/conventions.ts'
import { mcpGrantStart } from '../../shared/wire/runtime/mcp-grant.ts'
import { callbackAt, checkPath } from '../connectors/oauth/consent.ts'
import { COOKIE, cookieAt } from '../connectors/oauth/cookie.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { pathOf } from '../http/path-of.ts'
import { readQuery } from '../http/read-query.ts'
import type { McpGrantsDeps } from './deps.ts'
import { onWire } from './grant.ts'

/** OAuth towards MCP servers that ask for it. */
export function mcpGrantsRoute({ service, discovery, consent, publicUrl, maxBodyBytes }: McpGrantsDeps) {
  const { store } = service
  return new Hono<RuntimeHttpEnv>()
    .post('/v1/mcp-servers/oauth/start', jsonBody(mcpGrantStart, maxBodyBytes), async c => {
      const { url: address, scope, clientId, clientSecret, redirectAfter } = c.req.valid('json')
      const principal = c.get('principal')
      if (redirectAfter !== undefined) checkPath(redirectAfter)
      const url = new URL(address)
      url.hash = ''
      const origin = (publicUrl ?? new URL(c.req.url).origin).replace(/\/+$/, '')
      const client =
        clientId === undefined
          ? undefined
          : { id: clientId, ...(clientSecret !== undefined && { secret: clientSecret }) }
      const target = await discovery.targetOf({ ...{ url, scope, client }, redirectUri: callbackAt(origin) })
      const inBrowser = pathOf(c) !== c.req.path
      const begun = await consent.beginMcp(principal, target, { redirectAfter, origin, inBrowser })
      const { redirectUrl, state, expiresMs, browser } = begun
      if (browser !== undefined) setCookie(c, COOKIE, browser, { ...cookieAt(origin), maxAge: 600 })
      c.header('cache-control', 'no-store')
      return c.json({ redirectUrl, state, expiresAt: new Date(expiresMs).toISOString() } satisfies OAuthStarted)
    })
    .get('/v1/mcp-servers/grants', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const rows = await store.list(c.get('principal').tenantId, page)
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(onWire))
    })
    .delete('/v1/mcp-servers/grants/:id', async c => {
      const id = c.req.param('id')
      const grant = own(c.get('principal'), await store.byId(id), 'grant', id)
      if (!(await service.remove(grant))) throw notFound('grant', id)
      return c.body(null, 204)
    })
}
