import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { type Connector, list, type VendorAnswer } from '../definition.ts'
import { at, textAt } from '../read-body.ts'
import { bearer, oauthKeys, tokenOf } from '../sign-in.ts'

const pageSize = int(1, 100).default(10)
const aliases = { page_size: 'pageSize', limit: 'pageSize' }
const next = ({ body }: VendorAnswer) => (at(body, 'has_more') === true ? textAt(body, 'next_cursor') : undefined)

export const notion: Connector = {
  id: 'notion',
  name: 'Notion',
  auth: ['token', 'oauth2'],
  keys: [{ name: 'integrationToken', secret: true, usedBy: ['token'] }, ...oauthKeys],
  origin: () => 'https://api.notion.com',
  headers: { 'notion-version': '2022-06-28' },
  authorize: credential => bearer(tokenOf(credential, 'integrationToken')),
  // About three requests a second for each integration.
  rate: { concurrent: 3, perSecond: 3 },
  probe: { request: () => ({ path: '/v1/users/me' }), account: body => textAt(body, 'name') },
  actions: {
    search: list({
      about: 'Finds pages and databases by their titles.',
      arguments: z.object({ query: text(0, 1000).default(''), pageSize }),
      aliases,
      request: ({ query, pageSize, cursor }) => ({
        method: 'POST',
        path: '/v1/search',
        json: { query, page_size: pageSize, ...(cursor !== undefined && { start_cursor: cursor }) },
      }),
      next,
    }),
    list_databases: list({
      about: 'Lists the databases that are shared with the integration.',
      arguments: z.object({ pageSize }),
      aliases,
      request: ({ pageSize, cursor }) => ({
        method: 'POST',
        path: '/v1/search',
        json: {
          filter: { property: 'object', value: 'database' },
          page_size: pageSize,
          ...(cursor !== undefined && { start_cursor: cursor }),
        },
      }),
      next,
    }),
  },
}
