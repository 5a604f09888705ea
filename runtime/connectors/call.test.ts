import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { OutboundDenied } from '../../shared/http/outbound/bounded-body.ts'
import type { EgressClient, EgressInit } from '../../shared/http/outbound/egress-client.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { sleep } from '../../shared/time/sleep.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { expectWithin } from '../../tests/crowding.ts'
import { readArguments } from './arguments.ts'
import { type Target, vendorCalls } from './call.ts'
import { gmail } from './catalogue/gmail.ts'
import { catalogue } from './catalogue.ts'
import { readConfig } from './config.ts'
import { action, type Connector } from './definition.ts'
import { fixtures } from './testing/fixtures.ts'

interface Sent extends EgressInit {
  url: URL
}

function fixture(answer: (sent: Sent, at: number) => Response | Promise<Response>, deadlineMs?: number) {
  const sent: Sent[] = []
  const waited: number[] = []
  const fetch: EgressClient['fetch'] = async (url, init) => answer(sent[sent.push({ url, ...init }) - 1]!, sent.length)
  const wait = async (ms: number) => void waited.push(ms)
  return {
    sent,
    waited,
    calls: vendorCalls({ fetch, clock: systemClock, wait, ...(deadlineMs !== undefined && { deadlineMs }) }),
  }
}

const json = (body: unknown, init?: ResponseInit) => new Response(JSON.stringify(body), init)

/** A connector of an action for each effect. */
const probe: Connector = {
  ...catalogue.stripe,
  rate: { concurrent: 4 },
  actions: Object.fromEntries(
    (['read', 'idempotent', 'once'] as const).map(effect => [
      effect,
      action({
        about: effect,
        effect,
        arguments: z.object({}),
        request: () => ({
          method: effect === 'read' ? 'GET' : 'POST',
          path: `/${effect}`,
          ...(effect !== 'read' && { form: { a: '1' } }),
        }),
      }),
    ]),
  ),
}
const target: Target = {
  installId: 'i',
  connector: probe,
  baseUrl: 'https://far.example/api/',
  credential: { method: 'token', values: { secretKey: 'sk_live_canary' } },
}
const run = (calls: ReturnType<typeof vendorCalls>, effect: string, options = {}) =>
  calls.execute(target, probe.actions[effect]!, {}, options)

describe('a call of a vendor', () => {
  it('sends the key with what changes something, and with nothing else', async () => {
    const { calls, sent } = fixture(() => json({}))
    for (const effect of ['read', 'idempotent', 'once']) await run(calls, effect, { key: 'run:connector-1-1:1' })
    expect(sent.map(({ url, headers }) => [url.href, headers?.['idempotency-key']])).toEqual([
      ['https://far.example/api/read', undefined],
      ['https://far.example/api/idempotent', 'run:connector-1-1:1'],
      ['https://far.example/api/once', 'run:connector-1-1:1'],
    ])
  })

  it('gives the digits of a number beyond 2^53 as the vendor wrote them', async () => {
    const { calls } = fixture(() => new Response('{"id": 1234567890123456789, "n": 9007199254740992}'))
    expect(await run(calls, 'read')).toEqual({ id: '1234567890123456789', n: 2 ** 53 })
  })

  it.each([
    ['read', 3],
    ['idempotent', 3],
    ['once', 1],
  ])('that does "%s" is made %i times while the vendor is busy', async (effect, times) => {
    const { calls, sent, waited } = fixture(() => json({ message: 'busy' }, { status: 503 }))
    await expect(run(calls, effect)).rejects.toMatchObject({ status: 503, later: true, message: 'busy' })
    expect(sent).toHaveLength(times)
    expect(waited).toEqual(times === 1 ? [] : [500, 1000])
  })

  it('is made once where somebody else decides about repeating', async () => {
    const { calls, sent } = fixture(() => json({}, { status: 429, headers: { 'retry-after': '1' } }))
    await expect(run(calls, 'read', { tries: 1 })).rejects.toMatchObject({ later: true, retryAfterMs: 1000 })
    expect(sent).toHaveLength(1)
  })

  it('is not repeated when the vendor wants a longer pause than a caller would wait', async () => {
    const { calls, sent } = fixture(() => json({}, { status: 429, headers: { 'retry-after': '120' } }))
    await expect(run(calls, 'read')).rejects.toMatchObject({ status: 429, retryAfterMs: 120_000 })
    expect(sent).toHaveLength(1)
  })

  it('is not repeated after an answer that may have done something', async () => {
    const { calls, sent } = fixture(() => json({ message: 'oops' }, { status: 500 }))
    await expect(run(calls, 'idempotent')).rejects.toMatchObject({ status: 500, later: false, declined: false })
    expect(sent).toHaveLength(1)
  })

  it('ends at its deadline, however often it was repeated, and leaves nothing under way', async () => {
    let aborted = false
    const { calls } = fixture(
      ({ signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            aborted = true
            reject(signal.reason)
          }),
        ),
      30,
    )
    await expect(run(calls, 'read')).rejects.toMatchObject({
      message: 'stripe took longer than 0.03 s',
      unreachable: true,
    })
    expect(aborted).toBe(true)
  })

  it('ends with the run that it belongs to', async () => {
    const stop = new AbortController()
    const { calls } = fixture(
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          stop.abort(new Error('cancelled'))
        }),
    )
    await expect(run(calls, 'read', { signal: stop.signal })).rejects.toThrow('cancelled')
  })

  it('says why it could not be made', async () => {
    const broken = fixture(() => Promise.reject(new Error('connect ECONNREFUSED with sk_live_canary')))
    await expect(run(broken.calls, 'once')).rejects.toMatchObject({
      message: 'could not be reached: connect ECONNREFUSED with ***',
      unreachable: true,
      declined: false,
    })
    const denied = fixture(() =>
      Promise.reject(new OutboundDenied('far.example answered with a redirect to another origin')),
    )
    await expect(run(denied.calls, 'once')).rejects.toMatchObject({
      message: 'far.example answered with a redirect to another origin',
      declined: true,
    })
    const seeOther = fixture(() => Promise.reject(new OutboundDenied('far.example answered', { mayBeDone: true })))
    await expect(run(seeOther.calls, 'once')).rejects.toMatchObject({ declined: false })
  })

  it('shows no secret that a vendor repeats, in failures and in results, and at most 500 characters', async () => {
    const { calls } = fixture((_, at) =>
      at === 1
        ? json({ error: { message: `no such key sk_live_canary ${'x'.repeat(900)}` } }, { status: 400 })
        : json({ echoed: 'Bearer sk_live_canary' }),
    )
    const failure = (await run(calls, 'once').catch((error: unknown) => error)) as Error
    expect(failure.message).toHaveLength(500)
    expect(failure.message).toMatch(/^no such key \*\*\* x/)
    expect(await run(calls, 'once')).toEqual({ echoed: 'Bearer ***' })
  })

  it('takes no more than 4 MiB of an answer', async () => {
    const { calls } = fixture(() => json({ a: 'x'.repeat(5 * 1024 * 1024) }))
    await expect(run(calls, 'read')).rejects.toThrow('answered with more than 4194304 bytes')
  })

  it('reads an empty answer as an empty object, an array as items, and anything else as a value', async () => {
    const answers = [new Response(null, { status: 204 }), json([1, 2]), json('text')]
    const { calls } = fixture((_, at) => answers[at - 1]!)
    expect([await run(calls, 'read'), await run(calls, 'read'), await run(calls, 'read')]).toEqual([
      ...[{}, { items: [1, 2] }, { value: 'text' }],
    ])
  })
})

describe('a call that fails before it could change something', () => {
  it('is known to have changed nothing: what is only read first, and who never got a turn', async () => {
    const send = { to: 'a@b.example', subject: 's', body: 'b', label: 'x' }
    const { calls } = fixture(() => json({ message: 'oops' }, { status: 500 }))
    const credential = { method: 'oauth2', values: { accessToken: 'ya29.canary' } } as const
    const reading = calls.execute({ installId: 'g', connector: gmail, credential }, gmail.actions.send_message!, {
      ...send,
      skipInbox: false,
    })
    await expect(reading).rejects.toMatchObject({ status: 500, declined: true })

    // It lets go of its connection a moment after it was told to, and by then the other one has given up.
    const slow = fixture(
      ({ signal }) =>
        new Promise((_, no) => signal.addEventListener('abort', () => setTimeout(() => no(signal.reason), 30))),
      30,
    )
    const alone = { ...target, connector: { ...probe, rate: { concurrent: 1 } } }
    const both = [1, 2].map(() => slow.calls.execute(alone, probe.actions.once!, {}).catch((error: unknown) => error))
    expect(await Promise.all(both)).toMatchObject([{ declined: false }, { declined: true }])
    expect(slow.sent).toHaveLength(1)
  })
})

describe('many calls of one install', () => {
  it('keep to the rule of their connector, all 200 of them', async () => {
    let active = 0
    let most = 0
    const { calls, sent } = fixture(async () => {
      most = Math.max(most, ++active)
      await new Promise(resolve => setImmediate(resolve))
      active--
      return json({})
    })
    const all = await Promise.all(Array.from({ length: 200 }, () => run(calls, 'read')))
    expect([all.length, sent.length, most]).toEqual([200, 200, 4])
  })

  it('start no faster than their connector may be called', async () => {
    const quick = { ...probe, rate: { concurrent: 50, perSecond: 1000 } }
    const starts: number[] = []
    const calls = vendorCalls({
      fetch: async () => {
        starts.push(performance.now())
        return json({})
      },
      clock: systemClock,
      wait: sleep,
    })
    await Promise.all(
      Array.from({ length: 200 }, () => calls.execute({ ...target, connector: quick }, probe.actions.read!, {})),
    )
    expect(starts).toHaveLength(200)
    expect(starts.at(-1)! - starts[0]!).toBeGreaterThanOrEqual(195)
  })
})

describe('a message with a label', () => {
  const send = { to: 'a@b.example', subject: 's', body: 'b', label: 'Agents', skipInbox: true }
  const execute = (calls: ReturnType<typeof vendorCalls>) =>
    calls.execute(
      { installId: 'g', connector: gmail, credential: { method: 'oauth2', values: { accessToken: 'ya29.canary' } } },
      gmail.actions.send_message!,
      readArguments(gmail.actions.send_message!, send),
    )
  const paths = (sent: readonly Sent[]) => sent.map(({ method, url }) => `${method} ${url.pathname.split('/me/')[1]}`)

  it('gets it, made first where there is none, and stays out of the inbox', async () => {
    const answers = [
      { labels: [{ id: 'L1', name: 'Other' }] },
      { id: 'L2' },
      { id: 'm1' },
      { id: 'm1', labelIds: ['L2'] },
    ]
    const { calls, sent } = fixture((_, at) => json(answers[at - 1]))
    expect(await execute(calls)).toEqual({ id: 'm1', labelIds: ['L2'] })
    expect(paths(sent)).toEqual(['GET labels', 'POST labels', 'POST messages/send', 'POST messages/m1/modify'])
    expect(JSON.parse(String(sent[3]!.body))).toEqual({ addLabelIds: ['L2'], removeLabelIds: ['INBOX'] })
  })

  it('is told as sent when only its label could not be set', async () => {
    const answers = [json({ labels: [{ id: 'L1', name: 'agents' }] }), json({ id: 'm1' }), json({}, { status: 500 })]
    const { calls, sent } = fixture((_, at) => answers[at - 1]!)
    expect(await execute(calls)).toEqual({ id: 'm1', warning: 'sent, but its labels were not set: answered 500' })
    expect(paths(sent)).toEqual(['GET labels', 'POST messages/send', 'POST messages/m1/modify'])
  })
})

it('costs less than a millisecond for each action', async () => {
  const { calls } = fixture(() => json({ data: [{ id: 'ch_1' }], has_more: false }))
  const charges = catalogue.stripe.actions.list_charges!
  const fast = { ...target, connector: { ...catalogue.stripe, rate: { concurrent: 1 } } }
  const round = async (times: number) => {
    const before = performance.now()
    for (let n = 0; n < times; n++) await calls.execute(fast, charges, readArguments(charges, { limit: '10' }))
    return (performance.now() - before) / times
  }
  await round(200)
  const rounds = [await round(200), await round(200), await round(200)]
  expectWithin(rounds.toSorted((a, b) => a - b)[1]!, 1)
})

it('of 200 at once on one install keeps to the rule of its connector, and makes every one of them', async () => {
  const clock = manualClock(new Date('2026-01-02T03:04:05.000Z'))
  const starts: number[] = []
  let active = 0
  let most = 0
  const calls = vendorCalls({
    async fetch() {
      starts.push(clock.monotonic())
      most = Math.max(most, ++active)
      await new Promise(resolve => setImmediate(resolve))
      active--
      return json({ data: [], has_more: false })
    },
    clock,
    // What is under way gets on before time does.
    async wait(ms) {
      await new Promise(resolve => setImmediate(resolve))
      clock.advance(ms)
    },
  })
  const charges = catalogue.stripe.actions.list_charges!
  const one = { ...target, connector: catalogue.stripe }
  await Promise.all(Array.from({ length: 200 }, () => calls.execute(one, charges, readArguments(charges, {}))))
  const { concurrent, perSecond } = catalogue.stripe.rate
  expect([starts.length, most <= concurrent]).toEqual([200, true])
  const apart = starts.slice(1).map((at, n) => at - starts[n]!)
  expect(Math.min(...apart)).toBeGreaterThanOrEqual(1000 / perSecond! - 1e-6)
})

it('gmail lists what is there: a message that was deleted since its id was listed is left out', async () => {
  const { calls } = fixture(({ url }) => {
    const id = url.pathname.split('/').at(-1)
    if (id === 'messages') return json({ messages: [{ id: 'm1' }, { id: 'gone' }, { id: 'm2' }] })
    if (id !== 'gone') return json({ id })
    return json(
      { error: { code: 404, message: 'Requested entity was not found.', status: 'NOT_FOUND' } },
      { status: 404 },
    )
  })
  const credential = { method: 'oauth2', values: { accessToken: 'ya29.canary' } } as const
  const listed = await calls.execute({ installId: 'g', connector: gmail, credential }, gmail.actions.list_messages!, {
    limit: 3,
  })
  expect(listed).toMatchObject({ messages: [{ id: 'm1' }, { id: 'm2' }] })
})

it('discord takes messages from bots only: of an OAuth install none is sent, so that its token does not count as refused', async () => {
  const { calls, sent } = fixture(() => json({ message: '401: Unauthorized', code: 0 }, { status: 401 }))
  const { discord } = catalogue
  const { credential } = readConfig(discord, { accessToken: 'oauth-canary', authMethod: 'oauth2' })
  const args = { channelId: '1', content: 'hello' }
  const call = calls.execute({ installId: 'd', connector: discord, credential }, discord.actions.send_message!, args)
  await expect(call).rejects.toMatchObject({ declined: true, refused: false })
  expect(sent).toEqual([])
})

describe('what a vendor documents about its failures is understood', () => {
  const google = (reason: string) => ({
    error: { code: 403, message: 'no', errors: [{ domain: 'usageLimits', reason }] },
  })
  const linear = (extensions: object, data?: object) => ({
    errors: [{ message: 'no', extensions }],
    ...(data && { data }),
  })
  const soon = () => String(Math.ceil(Date.now() / 1000) + 90)
  const past = () => String(Math.floor(Date.now() / 1000) - 90)
  const unknown = { declined: false, later: false, refused: false }
  const limited = { declined: true, later: true, refused: false }
  const no = { declined: true, later: false, refused: false }

  it.each([
    // Some aspect of the operation may have succeeded before the error was raised.
    ['slack', 'post_message', 200, {}, { ok: false, error: 'internal_error' }, unknown],
    ['slack', 'post_message', 200, {}, { ok: false, error: 'fatal_error' }, unknown],
    ['slack', 'post_message', 200, {}, { ok: false, error: 'rate_limited' }, limited],
    ['slack', 'post_message', 503, {}, { ok: false, error: 'service_unavailable' }, { ...unknown, later: true }],
    ['telegram', 'send_message', 502, {}, { ok: false, error_code: 502, description: 'Bad Gateway' }, unknown],
    [
      ...(['telegram', 'send_message', 429, {}] as const),
      { ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 7 } },
      { ...limited, retryAfterMs: 7000 },
    ],
    ['linear', 'create_issue', 200, {}, linear({ type: 'internal error', code: 'INTERNAL_SERVER_ERROR' }), unknown],
    ['linear', 'create_issue', 200, {}, linear({ type: 'lock timeout' }), unknown],
    // A member of the answer could not be had; the mutation itself is done.
    ['linear', 'create_issue', 200, {}, linear({ type: 'forbidden' }, { issueCreate: { success: true } }), unknown],
    ['linear', 'create_issue', 200, {}, linear({ type: 'invalid input' }, { issueCreate: null }), no],
    ['linear', 'create_issue', 400, {}, linear({ type: 'ratelimited' }), limited],
    ['linear', 'list_issues', 401, {}, linear({ type: 'authentication error' }), { ...no, refused: true }],
    ['linear', 'list_issues', 401, {}, linear({}), { ...no, refused: true }],
    ['gmail', 'search', 403, {}, google('userRateLimitExceeded'), limited],
    ['google-calendar', 'list_events', 403, {}, google('rateLimitExceeded'), limited],
    ['google-drive', 'list_files', 403, {}, google('insufficientFilePermissions'), no],
    ['github', 'list_repos', 403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': soon }, {}, limited],
    [
      ...(['github', 'list_repos', 403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': past }] as const),
      {},
      { ...limited, retryAfterMs: 1000 },
    ],
    ['github', 'list_repos', 429, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': soon }, {}, limited],
    ['github', 'list_repos', 403, { 'x-ratelimit-remaining': '12', 'x-ratelimit-reset': soon }, {}, no],
    [
      ...(['github', 'create_issue', 403, {}] as const),
      { message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.' },
      { ...limited, retryAfterMs: 60_000 },
    ],
    [
      ...(['github', 'create_issue', 422, {}] as const),
      {
        message: 'Validation Failed',
        errors: [
          { resource: 'Issue', code: 'invalid', field: 'assignees' },
          { resource: 'Issue', code: 'custom', message: 'body is too long' },
        ],
      },
      { ...no, message: 'Validation Failed; assignees: invalid; body is too long' },
    ],
    ['vercel', 'list_projects', 429, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': soon }, {}, limited],
    // Jira answers as it answers strangers, and says only in a header that it does not take the token.
    [
      ...(['jira', 'list_issues', 200, { 'x-seraph-loginreason': 'AUTHENTICATED_FAILED' }] as const),
      { issues: [], isLast: true },
      { ...no, refused: true },
    ],
    ['salesforce', 'query', 403, {}, [{ errorCode: 'REQUEST_LIMIT_EXCEEDED', message: 'no' }], limited],
    [
      'notion',
      'search',
      529,
      {},
      { object: 'error', code: 'service_overload', message: 'no' },
      { ...unknown, later: true },
    ],
    ['twilio', 'send_sms', 503, {}, { code: 20503, message: 'no' }, { ...unknown, later: true }],
  ] as const)('%s %s: %i %j %j', async (id, name, status, headers, body, expected) => {
    const given = Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : value()])
    const { calls } = fixture(() => json(body, { status, headers: given as [string, string][] }))
    const connector = catalogue[id]
    const { credential } = readConfig(connector, fixtures[id].config)
    const action = connector.actions[name]!
    const args = readArguments(action, fixtures[id].actions[name]!.arguments)
    const failure = await calls
      .execute({ installId: id, connector, credential }, action, args)
      .catch((one: unknown) => one)
    expect(failure).toMatchObject(expected)
    if (given.length > 0 && expected === limited)
      expect((failure as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(80_000)
  })
})
