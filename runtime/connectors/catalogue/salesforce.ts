import { z } from 'zod'
import { text } from '../../../shared/wire/bounds.ts'
import { type Connector, list } from '../definition.ts'
import { path } from '../path.ts'
import { textAt } from '../read-body.ts'
import { bearer, oauthKeys } from '../sign-in.ts'

export const salesforce: Connector = {
  id: 'salesforce',
  name: 'Salesforce',
  auth: ['oauth2'],
  keys: [
    ...oauthKeys,
    {
      name: 'instanceUrl',
      usedBy: ['oauth2'],
      shape: [
        /^https?:\/\/[A-Za-z0-9.:[\]-]+\/?$/,
        'the address of an instance such as https://acme.my.salesforce.com',
      ],
    },
  ],
  origin: ({ values }) => values.instanceUrl ?? '',
  authorize: ({ values }) => bearer(values.accessToken),
  problem(body, status) {
    if (status !== 403 || textAt(body, 0, 'errorCode') !== 'REQUEST_LIMIT_EXCEEDED') return undefined
    return { message: textAt(body, 0, 'message') ?? 'REQUEST_LIMIT_EXCEEDED', limited: true }
  },
  rate: { concurrent: 10 },
  probe: { request: () => ({ path: '/services/data/v59.0/' }), account: body => textAt(body, 'identity') },
  actions: {
    query: list({
      about: 'Runs a SOQL query.',
      arguments: z.object({ q: text(1, 100_000) }),
      aliases: { query: 'q' },
      // A cursor is the last segment of the address of the next page, so it cannot lead anywhere else.
      request: ({ q, cursor }) =>
        cursor === undefined
          ? { path: '/services/data/v59.0/query', query: { q } }
          : { path: path`/services/data/v59.0/query/${cursor}` },
      next: ({ body }) => textAt(body, 'nextRecordsUrl')?.split('/').at(-1),
    }),
  },
}
