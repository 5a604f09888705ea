import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { type Connector, list } from '../definition.ts'
import { rateLimitProblem, textAt } from '../read-body.ts'
import { bearer, oauthKeys } from '../sign-in.ts'

/** What is not asked for is not answered. */
const FIELDS = 'nextPageToken,files(id,name,mimeType,modifiedTime,size,webViewLink,owners(displayName,emailAddress))'

export const googleDrive: Connector = {
  id: 'google-drive',
  name: 'Google Drive',
  auth: ['oauth2'],
  keys: oauthKeys,
  origin: () => 'https://www.googleapis.com',
  authorize: ({ values }) => bearer(values.accessToken),
  problem: rateLimitProblem,
  rate: { concurrent: 10 },
  probe: {
    request: () => ({ path: '/drive/v3/about', query: { fields: 'user(emailAddress)' } }),
    account: body => textAt(body, 'user', 'emailAddress'),
  },
  actions: {
    list_files: list({
      about: "Lists files. `query` is in Drive's own language, for example: name contains 'report'.",
      arguments: z.object({ query: text(1, 10_000).optional(), limit: int(1, 1000).default(10) }),
      request: ({ query, limit, cursor }) => ({
        path: '/drive/v3/files',
        query: {
          q: query,
          pageSize: limit,
          fields: FIELDS,
          pageToken: cursor,
          supportsAllDrives: true,
          includeItemsFromAllDrives: true,
        },
      }),
      next: ({ body }) => textAt(body, 'nextPageToken'),
    }),
  },
}
