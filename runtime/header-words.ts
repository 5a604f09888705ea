import type { HeaderWords } from '../shared/wire/header-words.ts'

const CALLER = 'caller to runtime'
const ANSWER = 'runtime to caller'
const HOOK = 'runtime to your webhook'

/** The headers that mean something of their own to the runtime, for docs/settings.md. */
export const runtimeHeaders: Readonly<Record<string, HeaderWords>> = {
  'idempotency-key': {
    from: CALLER,
    about:
      'Makes a POST that is sent twice do its work once: the second gets the first answer. 1 to 255 printable characters, kept for a day. Calls of tools and connectors carry one of their own, the same at each try.',
  },
  'idempotency-replayed': { from: ANSWER, about: '`true` on an answer that was given before.' },
  'x-request-id': {
    from: 'caller to runtime and back',
    about:
      "The caller's own id of the request, else a new one. The audit log names it. Up to 64 letters, digits, `.`, `_` or `-`.",
  },
  'last-event-id': { from: CALLER, about: 'The last event that was seen: a stream goes on after it.' },
  'x-csrf-token': {
    from: 'dashboard to runtime',
    about: 'The token of a login, on every change that is made by cookie instead of a key.',
  },
  'x-damaged-rows': {
    from: ANSWER,
    about: 'How many rows a page of a list leaves out, since they are damaged in the store. The log names them.',
  },
  link: { from: ANSWER, about: 'The next page of a list.' },
  'retry-after': { from: ANSWER, about: 'Seconds to wait, on a 429 and on a 503.' },
  'x-forwarded-for': {
    from: 'proxy to runtime',
    about: "The caller's address. It is believed from `PLATFORM_TRUSTED_PROXIES` only.",
  },
  'webhook-id': { from: HOOK, about: 'The id of the event, the same at each try.' },
  'webhook-timestamp': { from: HOOK, about: 'When it was sent, in seconds since 1970.' },
  'webhook-signature': {
    from: HOOK,
    about: '`v1,` and the HMAC of id, timestamp and body, as Standard Webhooks has it.',
  },
}
