import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { action, type Connector, list, type VendorAnswer } from '../definition.ts'
import { path } from '../path.ts'
import { arrayAt, at, nextParameter, textAt } from '../read-body.ts'
import { bearer, oauthKeys, tokenOf } from '../sign-in.ts'

const limit = int(1, 100).default(30)
const state = z.enum(['open', 'closed', 'all']).default('open')
const inRepo = { owner: text(1, 100), repo: text(1, 100) }
const numbered = z.object({ ...inRepo, number: int(1) })
const nextPage = ({ headers }: VendorAnswer) => nextParameter('page', headers)

/** `Validation Failed` says nothing that can be mended without it. */
const wrongField = (error: unknown) =>
  typeof error === 'string'
    ? error
    : (textAt(error, 'message') ?? `${textAt(error, 'field')}: ${textAt(error, 'code')}`)

export const github: Connector = {
  id: 'github',
  name: 'GitHub',
  auth: ['token', 'oauth2'],
  keys: [{ name: 'personalAccessToken', secret: true, usedBy: ['token'] }, ...oauthKeys],
  origin: () => 'https://api.github.com',
  headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
  authorize: credential => bearer(tokenOf(credential, 'personalAccessToken')),
  problem(body, status) {
    const message = textAt(body, 'message') ?? ''
    if (status === 422) return { message: [message, ...arrayAt(body, 'errors').map(wrongField)].join('; ') }
    // A secondary limit may come as a 403 without Retry-After; then it wants a minute at least.
    if ((status !== 403 && status !== 429) || !/\bsecondary rate\b/i.test(message)) return undefined
    return { message, limited: true, pauseMs: 60_000 }
  },
  // Its secondary limits speak of 100 at once; far fewer are polite.
  rate: { concurrent: 20 },
  probe: { request: () => ({ path: '/user' }), account: body => textAt(body, 'login') },
  actions: {
    list_repos: list({
      about: 'Lists the repositories that the account can reach.',
      arguments: z.object({ limit, sort: z.enum(['created', 'updated', 'pushed', 'full_name']).default('updated') }),
      request: ({ limit, sort, cursor }) => ({ path: '/user/repos', query: { sort, per_page: limit, page: cursor } }),
      next: nextPage,
    }),
    list_prs: list({
      about: 'Lists the pull requests of a repository.',
      arguments: z.object({ ...inRepo, state, limit }),
      request: ({ owner, repo, state, limit, cursor }) => ({
        path: path`/repos/${owner}/${repo}/pulls`,
        query: { state, per_page: limit, page: cursor },
      }),
      next: nextPage,
    }),
    get_pr: action({
      about: 'Reads one pull request.',
      effect: 'read',
      arguments: numbered,
      request: ({ owner, repo, number }) => ({ path: path`/repos/${owner}/${repo}/pulls/${number}` }),
    }),
    list_issues: list({
      about: 'Lists issues across the repositories of the account; pull requests are left out.',
      arguments: z.object({
        state,
        filter: z.enum(['assigned', 'created', 'mentioned', 'subscribed', 'repos', 'all']).default('assigned'),
        limit,
      }),
      request: ({ state, filter, limit, cursor }) => ({
        path: '/issues',
        query: { state, filter, per_page: limit, page: cursor },
      }),
      // Every pull request is an issue to this API.
      result: ({ body }) => arrayAt(body).filter(one => at(one, 'pull_request') === undefined),
      next: nextPage,
    }),
    get_issue: action({
      about: 'Reads one issue.',
      effect: 'read',
      arguments: numbered,
      request: ({ owner, repo, number }) => ({ path: path`/repos/${owner}/${repo}/issues/${number}` }),
    }),
    create_issue: action({
      about: 'Opens an issue.',
      effect: 'once',
      arguments: z.object({
        ...inRepo,
        title: text(1, 256),
        body: text(0, 65_536).optional(),
        labels: z.array(text(1, 256)).max(100).optional(),
        assignees: z.array(text(1, 100)).max(10).optional(),
      }),
      request: ({ owner, repo, ...issue }) => ({
        method: 'POST',
        path: path`/repos/${owner}/${repo}/issues`,
        json: issue,
      }),
    }),
  },
}
