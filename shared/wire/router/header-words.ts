import type { HeaderWords } from '../header-words.ts'
import type { requestHeaders, responseHeaders } from './headers.ts'

const CALLER = 'caller to router'
const ANSWER = 'router to caller'

/** The headers of `requestHeaders`. The router keeps each of them to itself: none goes to a provider. */
export const requestHeaderWords: Readonly<Record<keyof typeof requestHeaders, HeaderWords>> = {
  mode: {
    from: CALLER,
    about:
      '`observe`, `enforce`, or a profile (`cost`, `balanced`, `quality`, `latency`, `max`) for this request. Any other value is a 400, and so is one that the route does not allow (`header_modes`).',
  },
  key: { from: CALLER, about: 'A key of `ROUTER_KEYS`. It says which tenant calls.' },
  agent: {
    from: CALLER,
    about: 'The name of the program, for `match.agent`; without it, the first word of `user-agent`.',
  },
  subagent: { from: CALLER, about: 'The part of the program that calls, for `match.subagent`.' },
  session: {
    from: CALLER,
    about: 'The session of the request, for caps by session and for routes that stay on a rung.',
  },
  task: { from: CALLER, about: 'What the request is for, for `match.task`.' },
  language: { from: CALLER, about: 'The language of the request, for `match.language`.' },
  maxCostUsd: {
    from: CALLER,
    about: 'What this request may cost at most, in USD, such as `0.05`. Caps of the config hold as well.',
  },
  lateHeaders: {
    from: CALLER,
    about:
      '`true`: where the head of a stream goes out before these headers are known, comments of the stream say them, such as `: x-router-cost-usd 0.0042`.',
  },
}

export const responseHeaderWords: Readonly<Record<keyof typeof responseHeaders, HeaderWords>> = {
  traceId: { from: ANSWER, about: 'The id of the decision, for `router explain`. On errors too.' },
  mode: { from: ANSWER, about: '`observe`, or the profile that was used.' },
  servedRung: { from: ANSWER, about: 'The rung that answered. Enforce only, when it is known before the first byte.' },
  servedModel: { from: ANSWER, about: 'The model that answered, under the same conditions.' },
  costUsd: {
    from: ANSWER,
    about: 'What the request cost, under the same conditions. On errors of a routed request too.',
  },
  gates: { from: ANSWER, about: '`failed: a, b` where the answer that is served did not pass these gates.' },
}

export const moreRouterHeaders: Readonly<Record<string, HeaderWords>> = {
  'x-should-retry': { from: ANSWER, about: '`false` on refusals that the same request would get, or pay for, again.' },
  'retry-after': { from: ANSWER, about: 'Seconds to wait, on refusals that pass.' },
  'x-request-id': {
    from: 'caller to router and back',
    about:
      "The caller's own id of the request. It stands on the receipt, and `router explain` finds it. Up to 64 letters, digits, `.`, `_` or `-`.",
  },
}
