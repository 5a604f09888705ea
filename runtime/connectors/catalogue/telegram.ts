import { z } from 'zod'
import { int, shape, text } from '../../../shared/wire/bounds.ts'
import { action, type Connector, list } from '../definition.ts'
import { path } from '../path.ts'
import { arrayAt, at, textAt } from '../read-body.ts'

export const telegram: Connector = {
  id: 'telegram',
  name: 'Telegram',
  auth: ['token'],
  keys: [
    {
      name: 'botToken',
      secret: true,
      usedBy: ['token'],
      shape: [/^[A-Za-z0-9:_-]+$/, 'a bot token such as 123456:ABC-DEF'],
    },
  ],
  origin: () => 'https://api.telegram.org',
  // The token is a part of every path: paths are never shown.
  prefix: ({ values }) => path`/bot${values.botToken ?? ''}`.replaceAll('%3A', ':'),
  authorize: () => ({}),
  problem(body, status) {
    if (at(body, 'ok') !== false) return undefined
    const code = Number(at(body, 'error_code') ?? status)
    const seconds = at(body, 'parameters', 'retry_after')
    return {
      message: textAt(body, 'description') ?? `failed with ${code}`,
      // A token of the wrong form is reported as an unknown method.
      refused: code === 401 || (code === 404 && textAt(body, 'description') === 'Not Found'),
      limited: code === 429,
      pauseMs: typeof seconds === 'number' ? seconds * 1000 : undefined,
      unsure: code >= 500,
    }
  },
  // A bot may send about 30 messages a second over all chats.
  rate: { concurrent: 8, perSecond: 30 },
  probe: { request: () => ({ path: '/getMe' }), account: body => textAt(body, 'result', 'username') },
  actions: {
    send_message: action({
      about: 'Sends a message to a chat.',
      effect: 'once',
      arguments: z.object({
        chatId: shape(/^(?:-?\d{1,20}|@[A-Za-z0-9_]{1,64})$/, 'the id of a chat, or @ and a name'),
        text: text(1, 4096),
      }),
      aliases: { chat_id: 'chatId' },
      request({ chatId, text }) {
        // Documented as an integer, or a text where it is a name. Every id of theirs fits a double.
        const id = Number(chatId)
        return { method: 'POST', path: '/sendMessage', json: { chat_id: Number.isSafeInteger(id) ? id : chatId, text } }
      },
      result: ({ body }) => at(body, 'result') ?? {},
    }),
    get_updates: list({
      about: 'Gets what was sent to the bot and not yet confirmed.',
      arguments: z.object({ offset: int(Number.MIN_SAFE_INTEGER).optional(), limit: int(1, 100).default(100) }),
      request: ({ offset, limit, cursor }) => ({
        path: '/getUpdates',
        query: { offset: cursor === undefined ? offset : cursor, limit },
      }),
      result: ({ body }) => at(body, 'result') ?? [],
      // Asking from beyond the last one confirms those before it, so a cursor is given for full pages only.
      next({ body }, { limit }) {
        const all = arrayAt(body, 'result')
        const last = at(all.at(-1), 'update_id')
        return all.length >= limit && typeof last === 'number' ? String(last + 1) : undefined
      },
    }),
  },
}
