import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { action, type Connector, list } from '../definition.ts'
import { path } from '../path.ts'
import { textAt } from '../read-body.ts'
import { basic, bearer, oauthKeys } from '../sign-in.ts'

const FIELDS = 'summary,status,assignee,priority,issuetype,project,created,updated,labels'

const NOT_TAKEN = /AUTHENTICATED_FAILED|AUTHENTICATION_DENIED/

/** Atlassian Document Format: a paragraph for each block of text, a break for each line in it. */
function toDocument(plain: string) {
  const paragraphs = plain.replaceAll('\r\n', '\n').split(/\n{2,}/)
  return {
    type: 'doc',
    version: 1,
    content: paragraphs.map(block => ({
      type: 'paragraph',
      content: block
        .split('\n')
        .flatMap((line, at) => [
          ...(at > 0 ? [{ type: 'hardBreak' }] : []),
          ...(line === '' ? [] : [{ type: 'text', text: line }]),
        ]),
    })),
  }
}

export const jira: Connector = {
  id: 'jira',
  name: 'Jira',
  auth: ['basic', 'oauth2'],
  keys: [
    { name: 'apiToken', secret: true, usedBy: ['basic'] },
    { name: 'email', usedBy: ['basic'], shape: [/^[^\s:@]+@[^\s:@]+$/, 'an e-mail address'] },
    {
      name: 'domain',
      usedBy: ['basic'],
      shape: [/^(?:https:\/\/)?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\/?$/, 'a site such as acme.atlassian.net'],
    },
    { name: 'cloudId', usedBy: ['oauth2'], shape: [/^[A-Za-z0-9-]{1,64}$/, 'the id of a site'] },
    ...oauthKeys,
  ],
  origin({ method, values }) {
    if (method === 'oauth2') return 'https://api.atlassian.com'
    const site = (values.domain ?? '').replace(/^https:\/\//, '').replace(/\/$/, '')
    return `https://${site.includes('.') ? site : `${site}.atlassian.net`}`
  },
  prefix: ({ method, values }) => (method === 'oauth2' ? path`/ex/jira/${values.cloudId ?? ''}` : ''),
  authorize: ({ method, values }) =>
    method === 'oauth2' ? bearer(values.accessToken) : basic(values.email, values.apiToken),
  // A search with a token that has ended is answered as to a stranger: 200, and nothing found. What was created is created.
  problem(_, status, headers) {
    if (status === 201 || !NOT_TAKEN.test(headers.get('x-seraph-loginreason') ?? '')) return undefined
    return { message: 'the e-mail address or the token is not taken', refused: true }
  },
  rate: { concurrent: 10 },
  probe: {
    request: () => ({ path: '/rest/api/3/myself' }),
    account: body => textAt(body, 'emailAddress') ?? textAt(body, 'displayName'),
  },
  actions: {
    list_issues: list({
      about: 'Lists the issues that a JQL query finds. The query must be bounded, by a project or a time for example.',
      arguments: z.object({
        jql: text(1, 10_000).default('updated >= -30d order by updated DESC'),
        limit: int(1, 100).default(20),
      }),
      request: ({ jql, limit, cursor }) => ({
        path: '/rest/api/3/search/jql',
        query: { jql, maxResults: limit, fields: FIELDS, nextPageToken: cursor },
      }),
      next: ({ body }) => textAt(body, 'nextPageToken'),
    }),
    create_issue: action({
      about: 'Opens an issue in a project.',
      effect: 'once',
      arguments: z.object({
        project: text(1, 64),
        summary: text(1, 255),
        issueType: text(1, 64).default('Task'),
        description: text(0, 32_767).optional(),
      }),
      request: ({ project, summary, issueType, description }) => ({
        method: 'POST',
        path: '/rest/api/3/issue',
        json: {
          fields: {
            project: /^\d+$/.test(project) ? { id: project } : { key: project },
            summary,
            issuetype: { name: issueType },
            ...(description !== undefined && description !== '' && { description: toDocument(description) }),
          },
        },
      }),
    }),
  },
}
