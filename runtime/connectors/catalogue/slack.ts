import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { action, type Connector, list, type VendorAnswer } from '../definition.ts'
import { at, textAt } from '../read-body.ts'
import { bearer, oauthKeys, tokenOf } from '../sign-in.ts'

/** Errors that a new installation cures and a repeat does not. */
const REFUSED = new Set(['invalid_auth', 'not_authed', 'account_inactive', 'token_revoked', 'token_expired'])

const LIMITED = new Set(['ratelimited', 'rate_limited'])

/** Errors with which something may have been done before they were raised. */
const UNSURE = new Set(['fatal_error', 'internal_error', 'request_timeout'])

const nextCursor = ({ body }: VendorAnswer) => textAt(body, 'response_metadata', 'next_cursor')

export const slack: Connector = {
  id: 'slack',
  name: 'Slack',
  auth: ['token', 'oauth2'],
  keys: [{ name: 'botToken', secret: true, usedBy: ['token'] }, ...oauthKeys],
  origin: () => 'https://slack.com',
  authorize: credential => bearer(tokenOf(credential, 'botToken')),
  // Web API errors come with 200 and ok: false.
  problem(body) {
    if (at(body, 'ok') !== false) return undefined
    const error = textAt(body, 'error') ?? 'failed'
    return { message: error, refused: REFUSED.has(error), limited: LIMITED.has(error), unsure: UNSURE.has(error) }
  },
  rate: { concurrent: 8 },
  probe: {
    request: () => ({ method: 'POST', path: '/api/auth.test', form: {} }),
    account: body => [textAt(body, 'user'), textAt(body, 'team')].filter(Boolean).join(' @ '),
  },
  actions: {
    list_channels: list({
      about: 'Lists the public channels of the workspace.',
      arguments: z.object({ limit: int(1, 1000).default(100) }),
      request: ({ limit, cursor }) => ({ path: '/api/conversations.list', query: { limit, cursor } }),
      next: nextCursor,
    }),
    post_message: action({
      about: 'Posts a message to a channel or a person.',
      effect: 'once',
      arguments: z.object({ channel: text(1, 256), text: text(1, 40_000) }),
      request: ({ channel, text }) => ({ method: 'POST', path: '/api/chat.postMessage', json: { channel, text } }),
    }),
    list_users: list({
      about: 'Lists the people of the workspace.',
      arguments: z.object({ limit: int(1, 1000).default(100) }),
      request: ({ limit, cursor }) => ({ path: '/api/users.list', query: { limit, cursor } }),
      next: nextCursor,
    }),
  },
}
