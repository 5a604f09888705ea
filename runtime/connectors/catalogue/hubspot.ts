import { z } from 'zod'
import { int } from '../../../shared/wire/bounds.ts'
import { type Connector, list, type VendorAnswer } from '../definition.ts'
import { textAt } from '../read-body.ts'
import { bearer, oauthKeys, tokenOf } from '../sign-in.ts'

const limit = int(1, 100).default(10)
const next = ({ body }: VendorAnswer) => textAt(body, 'paging', 'next', 'after')

export const hubspot: Connector = {
  id: 'hubspot',
  name: 'HubSpot',
  auth: ['token', 'oauth2'],
  keys: [{ name: 'apiKey', secret: true, usedBy: ['token'] }, ...oauthKeys],
  origin: () => 'https://api.hubapi.com',
  authorize: credential => bearer(tokenOf(credential, 'apiKey')),
  // 100 requests in 10 seconds is the least that a private app has.
  rate: { concurrent: 10, perSecond: 10 },
  probe: { request: () => ({ path: '/account-info/v3/details' }), account: body => textAt(body, 'portalId') },
  actions: {
    list_contacts: list({
      about: 'Lists contacts.',
      arguments: z.object({ limit }),
      request: ({ limit, cursor }) => ({ path: '/crm/v3/objects/contacts', query: { limit, after: cursor } }),
      next,
    }),
    list_deals: list({
      about: 'Lists deals.',
      arguments: z.object({ limit }),
      request: ({ limit, cursor }) => ({ path: '/crm/v3/objects/deals', query: { limit, after: cursor } }),
      next,
    }),
  },
}
