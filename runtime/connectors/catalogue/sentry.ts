import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { type Connector, list } from '../definition.ts'
import { path } from '../path.ts'
import { linkTo, textAt } from '../read-body.ts'
import { bearer } from '../sign-in.ts'

export const sentry: Connector = {
  id: 'sentry',
  name: 'Sentry',
  auth: ['token'],
  keys: [{ name: 'authToken', secret: true, usedBy: ['token'] }],
  origin: () => 'https://sentry.io',
  authorize: ({ values }) => bearer(values.authToken),
  rate: { concurrent: 5 },
  probe: {
    request: () => ({ path: '/api/0/organizations/', query: { per_page: 1 } }),
    account: body => textAt(body, 0, 'slug'),
  },
  actions: {
    list_issues: list({
      about: 'Lists the unresolved issues of an organization, or of one of its projects.',
      arguments: z.object({
        organization: text(1, 128),
        project: text(1, 128).optional(),
        limit: int(1, 100).default(25),
      }),
      // Without the last slash it answers with a redirect.
      request: ({ organization, project, limit, cursor }) => ({
        path:
          project === undefined
            ? path`/api/0/organizations/${organization}/issues/`
            : path`/api/0/projects/${organization}/${project}/issues/`,
        query: { limit, cursor },
      }),
      // It links to a next page even where there is nothing on it, and says so beside the link.
      next({ headers }) {
        const link = linkTo('next', headers)
        return link?.parameters.results === 'true' ? link.parameters.cursor : undefined
      },
    }),
  },
}
