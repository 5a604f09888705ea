import { connectorEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/connectors.ts'
import { type Consent, callbackAt, checkPath, consentStarted } from '../connectors/oauth/consent.ts'
import { homeOf, pathOf } from '../http/addresses.ts'
import { type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import type { Discovery } from './discovery.ts'
import { onWire } from './grant.ts'
import type { GrantService } from './service.ts'

export interface McpGrantsDeps {
  service: GrantService
  discovery: Discovery
  consent: Pick<Consent, 'beginMcp'>
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl: string | undefined
}

/** OAuth towards MCP servers that ask for it. */
export function mcpGrantOperations({ service, discovery, consent, publicUrl }: McpGrantsDeps): Operation[] {
  const { store } = service
  return [
    operation(endpoints.mcpGrantStart, async ({ principal, body, context }) => {
      const { url: address, scope, clientId, clientSecret, redirectAfter } = body
      if (redirectAfter !== undefined) checkPath(redirectAfter)
      const url = new URL(address)
      url.hash = ''
      const origin = homeOf(context, publicUrl)
      const client =
        clientId === undefined
          ? undefined
          : { id: clientId, ...(clientSecret !== undefined && { secret: clientSecret }) }
      const target = await discovery.targetOf({ url, scope, client, redirectUri: callbackAt(origin) })
      const inBrowser = pathOf(context) !== context.req.path
      return consentStarted(
        context,
        await consent.beginMcp(principal, target, { redirectAfter, origin, inBrowser }),
        origin,
      )
    }),
    operation(endpoints.mcpGrants, async call => {
      const page = pageOf(call)
      const rows = await store.list(call.principal.tenantId, page)
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(onWire)
    }),
    operation(endpoints.removeMcpGrant, async ({ principal, params: { id } }) => {
      const grant = own(principal, await store.byId(id), 'grant', id)
      if (!(await service.remove(grant))) throw notFound('grant', id)
    }),
  ]
}
