import { describe, expect, it } from 'vitest'
import type { EgressInit } from '../../../shared/http/outbound/egress-client.ts'
import { type ConnectorId, connectorIds } from '../../../shared/wire/runtime/catalog.ts'
import { VendorFailure } from '../vendor-failure.ts'
import { tokenCalls } from './token-calls.ts'
import { vendorAt } from './vendors.ts'

const client = { id: 'client-id', secret: 'client-secret' }
const BASIC = `Basic ${btoa('client-id:client-secret')}`
const GRANTED = { access_token: 'a2', token_type: 'bearer', refresh_token: 'r2', expires_in: 60 }

/** Token endpoints and the addresses that take tokens back, written from the vendors' documentation (docs/spec/runtime.md §8). */
const HOMES: Record<string, { token: string; back?: string; json?: true; basic?: true; headers?: object }> = {
  ...Object.fromEntries(
    ['gmail', 'google-calendar', 'google-drive', 'google-sheets'].map(id => [
      id,
      { token: 'https://oauth2.googleapis.com/token', back: 'POST https://oauth2.googleapis.com/revoke' },
    ]),
  ),
  slack: { token: 'https://slack.com/api/oauth.v2.access', back: 'POST https://slack.com/api/auth.revoke' },
  discord: {
    token: 'https://discord.com/api/oauth2/token',
    back: 'POST https://discord.com/api/oauth2/token/revoke',
    headers: { 'user-agent': expect.stringMatching(/^DiscordBot \(\S+, \S+\)$/) },
  },
  github: {
    token: 'https://github.com/login/oauth/access_token',
    back: 'DELETE https://api.github.com/applications/client-id/token',
  },
  linear: { token: 'https://api.linear.app/oauth/token', back: 'POST https://api.linear.app/oauth/revoke' },
  jira: { token: 'https://auth.atlassian.com/oauth/token', json: true },
  notion: {
    token: 'https://api.notion.com/v1/oauth/token',
    back: 'POST https://api.notion.com/v1/oauth/revoke',
    headers: { 'notion-version': '2022-06-28' },
    json: true,
    basic: true,
  },
  hubspot: {
    token: 'https://api.hubapi.com/oauth/2026-03/token',
    back: 'POST https://api.hubapi.com/oauth/2026-03/token/revoke',
  },
  salesforce: {
    token: 'https://login.salesforce.com/services/oauth2/token',
    back: 'POST https://login.salesforce.com/services/oauth2/revoke',
  },
}

function recorded(answer: unknown, status = 200) {
  const sent: { url: string; init: EgressInit }[] = []
  const calls = tokenCalls({
    async fetch(url, init) {
      sent.push({ url: url.href, init })
      return Response.json(answer, { status })
    },
  })
  return { sent, calls }
}

const withOAuth = connectorIds.flatMap(id => {
  const vendor = vendorAt(id, undefined)
  return vendor ? [{ id, vendor, home: HOMES[id]! }] : []
})

it('is offered by every connector that has it', () => {
  expect(withOAuth.map(({ id }) => id).sort()).toEqual(Object.keys(HOMES).sort())
})

describe.each(withOAuth)('$id', ({ vendor, home }) => {
  it('gets its refresh token at its own endpoint and in its own way', async () => {
    const { sent, calls } = recorded(GRANTED)
    expect(await calls.refresh(vendor, client, 'r1')).toMatchObject({
      accessToken: 'a2',
      refreshToken: 'r2',
      expiresInMs: 60_000,
    })
    expect(sent.map(({ url }) => url)).toEqual([home.token])
    const { headers = {}, body = '' } = sent[0]!.init
    const came = home.json ? JSON.parse(String(body)) : Object.fromEntries(new URLSearchParams(String(body)))
    expect(came).toMatchObject({ grant_type: 'refresh_token', refresh_token: 'r1' })
    expect(home.basic ? headers.authorization : came.client_secret).toBe(home.basic ? BASIC : 'client-secret')
    expect(headers).toMatchObject({ accept: 'application/json', 'user-agent': 'waybill', ...home.headers })
  })

  it('gets its tokens back at its own address, where it has one', async () => {
    const { sent, calls } = recorded({})
    const told = await calls.revoke(vendor, client, { accessToken: 'a1', refreshToken: 'r1' })
    expect(told).toBe(home.back !== undefined)
    expect(sent.map(({ url, init }) => `${init.method} ${url}`)).toEqual(home.back === undefined ? [] : [home.back])
    const { headers, body } = sent[0]?.init ?? {}
    // GitHub rejects what comes without a name of its client.
    if (sent.length > 0) expect(headers).toMatchObject({ 'user-agent': 'waybill', ...home.headers })
    if (sent.length > 0) expect(`${sent[0]!.url} ${JSON.stringify(headers)} ${String(body)}`).toMatch(/[ar]1/)
  })

  it('is not taken to have got its tokens back where it says no', async () => {
    const { calls } = recorded({ ok: false, error: 'not_authed' }, home.back?.includes('slack') ? 200 : 400)
    const told = calls.revoke(vendor, client, { accessToken: 'a1', refreshToken: 'r1' })
    expect(await told.catch(() => false)).toBe(false)
  })

  it('is asked for what its actions need, over https, with a challenge', async () => {
    const { calls } = recorded({})
    const { url, verifier } = await calls.consent(vendor, client, { redirectUri: 'https://here/back', state: 's' })
    const { protocol, searchParams } = new URL(url)
    expect(protocol).toBe('https:')
    expect(searchParams.get('code_challenge_method')).toBe('S256')
    expect(searchParams.get('code_challenge')).not.toBe(verifier)
    expect(url).not.toContain(verifier)
    expect(url).not.toContain('client-secret')
  })
})

describe('an answer of a token endpoint', () => {
  const vendorOf = (id: ConnectorId) => vendorAt(id, undefined)!

  it.each([
    ['slack', { ok: false, error: 'invalid_refresh_token' }, 200, true],
    ['slack', { ok: false, error: 'bad_client_secret' }, 200, true],
    ['slack', { ok: false, error: 'invalid_client_id' }, 200, true],
    ['hubspot', { error: 'invalid_grant', status: 'BAD_REFRESH_TOKEN', message: 'no' }, 400, true],
    ['jira', { error: 'unauthorized_client', error_description: 'refresh_token is invalid' }, 403, true],
    ['github', { error: 'bad_refresh_token', error_description: 'no' }, 200, true],
    ['gmail', { error: 'invalid_grant' }, 400, true],
    ['gmail', { error: 'temporarily_unavailable' }, 503, false],
    ['hubspot', { status: 'error', message: 'oops' }, 500, false],
  ] as const)('of %s that says no is no token: %j', async (id, answer, status, refused) => {
    const { calls } = recorded(answer, status)
    const failure = await calls.refresh(vendorOf(id), client, 'r1').catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(VendorFailure)
    expect((failure as VendorFailure).refused).toBe(refused)
    expect(String(failure)).not.toMatch(/r1|client-secret/)
  })

  it('of another form is read as it is meant', async () => {
    const bot = {
      ok: true,
      access_token: 'xoxb',
      token_type: 'bot',
      scope: ['a'],
      expires_in: '43200',
      team: { id: 'T' },
    }
    const { calls } = recorded(bot)
    expect(await calls.refresh(vendorOf('slack'), client, 'r1')).toEqual({
      accessToken: 'xoxb',
      refreshToken: undefined,
      expiresInMs: 43_200_000,
      extras: { ok: true, token_type: 'bot', scope: ['a'], team: { id: 'T' } },
    })
  })

  it.each([1e10, 1e14, 1e300, 1e308, '9007199254740993', 0, -1, '-1', '', 'soon', true, {}, null])(
    'has no end that is known where it is said to live for %j s',
    async expires_in => {
      const { calls } = recorded({ ...GRANTED, expires_in })
      expect((await calls.refresh(vendorOf('gmail'), client, 'r1')).expiresInMs).toBeUndefined()
    },
  )

  it('lives for a whole number of milliseconds, which is what a store keeps', async () => {
    const { calls } = recorded({ ...GRANTED, expires_in: 3599.98765 })
    expect((await calls.refresh(vendorOf('gmail'), client, 'r1')).expiresInMs).toBe(3_599_987)
  })

  it('of a public client is asked for without a secret', async () => {
    const { sent, calls } = recorded(GRANTED)
    await calls.refresh(vendorOf('gmail'), { id: 'client-id' }, 'r1')
    expect(String(sent[0]!.init.body)).not.toContain('client_secret')
  })
})
