import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { action, type Connector, list } from '../definition.ts'
import { arrayAt, at, textAt } from '../read-body.ts'
import { bearer, oauthKeys } from '../sign-in.ts'
import { VendorFailure } from '../vendor-failure.ts'

const FIELDS =
  'id identifier title url priority createdAt updatedAt state { name type } assignee { name email } team { key name }'
const LIST = `query Issues($first: Int!, $after: String) {
  issues(first: $first, after: $after, orderBy: updatedAt) { nodes { ${FIELDS} } pageInfo { hasNextPage endCursor } }
}`
const CREATE = `mutation CreateIssue($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { ${FIELDS} } } }`

/** Types of errors that are not about the request. */
const UNSURE = new Set(['internal error', 'network error', 'lock timeout', 'unknown', 'other'])

const graphql = (query: string, variables: Record<string, unknown>) =>
  ({ method: 'POST', path: '/graphql', json: { query, variables } }) as const

export const linear: Connector = {
  id: 'linear',
  name: 'Linear',
  auth: ['token', 'oauth2'],
  keys: [{ name: 'apiKey', secret: true, usedBy: ['token'] }, ...oauthKeys],
  origin: () => 'https://api.linear.app',
  // An API key stands alone in the header; only an OAuth token is a bearer.
  authorize: ({ method, values }) =>
    method === 'oauth2' ? bearer(values.accessToken) : { authorization: values.apiKey ?? '' },
  problem(body, status) {
    const [first] = arrayAt(body, 'errors')
    if (first === undefined) return undefined
    const code = textAt(first, 'extensions', 'code')
    const type = textAt(first, 'extensions', 'type') ?? ''
    return {
      message: textAt(first, 'extensions', 'userPresentableMessage') ?? textAt(first, 'message') ?? 'failed',
      refused: status === 401 || code === 'AUTHENTICATION_ERROR' || type === 'authentication error',
      limited: code === 'RATELIMITED' || type === 'ratelimited',
      // A mutation that gave something is done; what failed then is a member of its answer.
      unsure:
        UNSURE.has(type) || code === 'INTERNAL_SERVER_ERROR' || at(body, 'data', 'issueCreate', 'success') === true,
    }
  },
  rate: { concurrent: 8 },
  probe: {
    request: () => graphql('query Viewer { viewer { name email } }', {}),
    account: body => textAt(body, 'data', 'viewer', 'email') ?? textAt(body, 'data', 'viewer', 'name'),
  },
  actions: {
    list_issues: list({
      about: 'Lists issues, the last changed first.',
      arguments: z.object({ limit: int(1, 250).default(25) }),
      request: ({ limit, cursor }) => graphql(LIST, { first: limit, ...(cursor !== undefined && { after: cursor }) }),
      result: ({ body }) => at(body, 'data', 'issues') ?? {},
      next: ({ body }) =>
        at(body, 'data', 'issues', 'pageInfo', 'hasNextPage') === true
          ? textAt(body, 'data', 'issues', 'pageInfo', 'endCursor')
          : undefined,
    }),
    create_issue: action({
      about: 'Opens an issue in a team.',
      effect: 'once',
      arguments: z.object({ title: text(1, 512), teamId: text(1, 128), description: text(0, 100_000).optional() }),
      request: input => graphql(CREATE, { input }),
      result({ body, status }) {
        const made = at(body, 'data', 'issueCreate')
        if (at(made, 'success') === false) throw new VendorFailure({ status, message: 'the issue was not created' })
        return at(made, 'issue') ?? {}
      },
    }),
  },
}
