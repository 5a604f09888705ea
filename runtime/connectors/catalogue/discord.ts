import { z } from 'zod'
import { VERSION } from '../../../shared/version.ts'
import { int, shape, text } from '../../../shared/wire/bounds.ts'
import { action, type Connector, list } from '../definition.ts'
import { path } from '../path.ts'
import { arrayAt, textAt } from '../read-body.ts'
import { bearer, oauthKeys } from '../sign-in.ts'
import { VendorFailure } from '../vendor-failure.ts'

export const discord: Connector = {
  id: 'discord',
  name: 'Discord',
  auth: ['token', 'oauth2'],
  keys: [{ name: 'botToken', secret: true, usedBy: ['token'] }, ...oauthKeys],
  origin: () => 'https://discord.com',
  // A client that does not name itself in this form may be blocked.
  headers: { 'user-agent': `DiscordBot (waybill, ${VERSION})` },
  // Only OAuth tokens are bearers; a bot's is of a scheme of its own.
  authorize: ({ method, values }) =>
    method === 'oauth2' ? bearer(values.accessToken) : { authorization: `Bot ${values.botToken}` },
  // The global limit is 50 requests a second for each bot.
  rate: { concurrent: 10, perSecond: 50 },
  probe: { request: () => ({ path: '/api/v10/users/@me' }), account: body => textAt(body, 'username') },
  actions: {
    list_guilds: list({
      about: 'Lists the servers that the account is a member of.',
      arguments: z.object({ limit: int(1, 200).default(100) }),
      request: ({ limit, cursor }) => ({ path: '/api/v10/users/@me/guilds', query: { limit, after: cursor } }),
      // There is no mark of a last page: a full one may be followed by another.
      next({ body }, { limit }) {
        const all = arrayAt(body)
        return all.length >= limit ? textAt(all.at(-1), 'id') : undefined
      },
    }),
    send_message: action({
      about: 'Sends a message to a channel.',
      effect: 'once',
      // Ids go beyond 2^53, so they stay texts.
      arguments: z.object({ channelId: shape(/^\d{1,20}$/, 'the id of a channel, as a text'), content: text(1, 2000) }),
      aliases: { channel_id: 'channelId' },
      request({ channelId, content }, { method }) {
        // There is no scope for it: an OAuth token is refused as if it had ended.
        if (method === 'oauth2') throw new VendorFailure({ message: 'only a bot sends messages: install its botToken' })
        return { method: 'POST', path: path`/api/v10/channels/${channelId}/messages`, json: { content } }
      },
    }),
  },
}
