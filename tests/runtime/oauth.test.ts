import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { markUnavailable } from '../../shared/sql/db-fault.ts'
import type { AuditEntry } from '../../shared/wire/runtime/audit.ts'
import type { ConnectorDetail } from '../../shared/wire/runtime/connector.ts'
import { api } from './api.ts'
import { authorizationServer, CALLBACK, CLIENT, oauthFixture } from './oauth-fixture.ts'

const open: { close(): Promise<void> | void }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function fixture(tokenSeconds?: number) {
  const at = await authorizationServer(CALLBACK, tokenSeconds)
  open.push(at)
  const made = await oauthFixture(at)
  open.push(made)
  const detail = () => made.json<ConnectorDetail>(200, 'GET', '/v1/connectors/google-calendar')
  return { ...made, at, detail }
}

const HOUR = 3_600_000

describe('a round trip', () => {
  it('goes to the consent page with PKCE and comes back with an install that works', async () => {
    const on = await fixture()
    const { redirectUrl, state, expiresAt } = await on.begin({ redirectAfter: '/ui/somewhere?tab=1' })
    const { origin, searchParams } = new URL(redirectUrl)
    expect(origin).toBe(on.at.origin)
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: CLIENT.id,
      redirect_uri: CALLBACK,
      response_type: 'code',
      code_challenge_method: 'S256',
      state,
      scope: 'https://www.googleapis.com/auth/calendar.readonly',
      access_type: 'offline',
      prompt: 'consent',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect(state).toMatch(/^[\w-]{43}$/)
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(9 * 60_000)
    const returned = await on.back((await on.at.browse(redirectUrl)).search)
    expect([returned.status, returned.headers.get('location')]).toEqual([
      302,
      '/ui/somewhere?tab=1&connector=google-calendar&status=installed',
    ])
    expect(await on.detail()).toMatchObject({
      status: 'installed',
      ready: true,
      authMethod: 'oauth2',
      config: { accessToken: '***', refreshToken: '***' },
    })
    expect((await on.list()).status).toBe(200)
    expect(on.at.seen).toMatchObject({ exchanges: 1, refreshes: 0 })
    const entries = await on.json<AuditEntry[]>(200, 'GET', '/v1/audit-log')
    expect(entries.map(({ action }) => action)).toContain('connectorOAuthCallback')
    expect((await on.db.execute('select sealed from oauth_rounds')).rows).toEqual([])
    const stored = JSON.stringify((await on.db.execute('select * from connectors')).rows)
    for (const token of [...on.at.seen.tokens, ...on.at.seen.refreshTokens]) expect(stored).not.toContain(token)
    expect([on.at.seen.tokens.size, on.at.seen.refreshTokens.length]).toEqual([1, 1])
  })

  it('ends at a state that is wrong, used, or too old', async () => {
    const on = await fixture()
    const { redirectUrl } = await on.begin()
    const { search } = await on.at.browse(redirectUrl)
    const forged = new URLSearchParams(search)
    forged.set('state', 'x'.repeat(43))
    for (const bad of ['', '?code=1', `?${forged}`]) expect((await on.back(bad)).status).toBe(400)
    const both = await Promise.all([on.back(search), on.back(search)])
    expect(both.map(({ status }) => status).sort()).toEqual([302, 400])
    expect((await on.back(search)).status).toBe(400)
    const late = await on.begin()
    const { search: lateSearch } = await on.at.browse(late.redirectUrl)
    on.pass(10 * 60_000)
    expect((await on.back(lateSearch)).status).toBe(400)
    expect(on.at.seen.exchanges).toBe(1)
  })

  it('that a person declines leaves everything as it was', async () => {
    const on = await fixture()
    const { state } = await on.begin()
    const answer = await on.back(`?error=access_denied&state=${state}`)
    expect([answer.status, answer.headers.get('location')]).toEqual([
      302,
      '/ui/connectors?connector=google-calendar&status=denied',
    ])
    expect((await on.call('GET', '/v1/connectors/google-calendar')).status).toBe(404)
    expect((await on.back(`?code=1&state=${state}`)).status).toBe(400)
  })

  it('with a code that the vendor does not know is a 502, and with another name of the vendor too', async () => {
    const on = await fixture()
    for (const iss of [on.at.origin, 'https://elsewhere.example']) {
      const { state } = await on.begin()
      const answer = await on.back(`?code=nope&state=${state}&iss=${encodeURIComponent(iss)}`)
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([502, 'upstream_failed'])
    }
    expect(on.at.seen.exchanges).toBe(0)
  })

  it.each([
    [404, { connectorId: 'nope' }, 'the catalogue has'],
    [400, { connectorId: 'stripe' }, 'has no OAuth'],
    [400, { connectorId: 'slack' }, 'PLATFORM_OAUTH_SLACK_CLIENT_ID'],
    [400, { redirectAfter: '//elsewhere.example' }, 'redirectAfter'],
    [400, { redirectAfter: 'https://elsewhere.example' }, 'redirectAfter'],
    [400, { redirectAfter: '/\\elsewhere.example' }, 'redirectAfter'],
  ])('does not begin: %i %j', async (status, body, message) => {
    const on = await fixture()
    const given = { connectorId: 'google-calendar', ...body }
    expect(await on.json(status, 'POST', '/v1/connectors/oauth/start', given)).toMatchObject({
      error: expect.stringContaining(message),
    })
  })
})

describe('tokens', () => {
  it('are refreshed a minute before their end, and each rotated refresh token is used once', async () => {
    const on = await fixture()
    await on.connect()
    on.pass(HOUR - 61_000)
    expect((await on.list()).status).toBe(200)
    expect(on.at.seen.refreshes).toBe(0)
    on.pass(2000)
    for (let round = 1; round <= 3; round++) {
      expect((await on.list()).status).toBe(200)
      expect((await on.list()).status).toBe(200)
      expect(on.at.seen.refreshes).toBe(round)
      on.pass(HOUR)
    }
    expect(new Set(on.at.seen.refreshTokens).size).toBe(4)
    expect(on.at.seen.tokens.size).toBe(4)
  })

  it('that live for a minute are not refreshed before each call', async () => {
    const on = await fixture(60)
    await on.connect()
    // How long the first one lives was not seen by what looks at its end.
    expect((await on.list()).status).toBe(200)
    expect(on.at.seen.refreshes).toBe(1)
    on.pass(43_000)
    expect((await on.list()).status).toBe(200)
    expect(on.at.seen.refreshes).toBe(1)
    on.pass(3000)
    expect((await on.list()).status).toBe(200)
    expect(on.at.seen.refreshes).toBe(2)
  })

  it('are refreshed once by a hundred calls at a time', async () => {
    const on = await fixture()
    await on.connect()
    on.pass(HOUR)
    const answers = await Promise.all(Array.from({ length: 100 }, () => on.list()))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(on.at.seen.refreshes).toBe(1)
  })

  it('are refreshed once by two processes on one store', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'waybill-oauth-'))
    open.push({ close: () => rmSync(folder, { recursive: true }) })
    const at = await authorizationServer()
    open.push(at)
    const url = join(folder, 'runtime.db')
    const one = await oauthFixture(at, { url })
    open.push(one)
    const other = await oauthFixture(at, { url })
    open.push(other)
    await one.connect()
    for (const process of [one, other]) process.pass(HOUR)
    const calls = Array.from({ length: 50 }, () => [one.list(), other.list()]).flat()
    const answers = await Promise.all(calls)
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(at.seen.refreshes).toBe(1)
  })

  it('that come while the store is away are kept once it is back: those before them are of no use any more', async () => {
    const at = await authorizationServer()
    open.push(at)
    const db = await openDb(':memory:')
    let tries = 0
    const execute: Db['execute'] = statement => {
      const isNew = typeof statement === 'object' && 'sql' in statement && statement.sql.includes('set sealed = ?1')
      if (!isNew || at.seen.refreshes === 0 || ++tries > 2) return db.execute(statement)
      return markUnavailable(() => Promise.reject(new TypeError('fetch failed')))
    }
    const on = await oauthFixture(at, { db: { ...db, execute } })
    open.push(on)
    await on.connect()
    for (let refreshes = 1; refreshes <= 2; refreshes++) {
      on.pass(HOUR)
      expect((await on.list()).status).toBe(200)
      expect(at.seen.refreshes).toBe(refreshes)
    }
    expect(tries).toBeGreaterThan(2)
  })

  it('send a call to no other address where an install for one came while they were refreshed', async () => {
    const at = await authorizationServer()
    open.push(at)
    const db = await openDb(':memory:')
    let between = async () => undefined as unknown
    const execute: Db['execute'] = async statement => {
      const isNew = typeof statement === 'object' && 'sql' in statement && statement.sql.includes('set sealed = ?1')
      if (isNew) await between()
      return db.execute(statement)
    }
    const on = await oauthFixture(at, { db: { ...db, execute } })
    open.push(on)
    await on.connect()
    const anew = (path: string) => async () => {
      const config = { accessToken: 'of another', baseUrl: at.origin + path }
      return on.json(201, 'POST', '/v1/connectors/install', { connectorId: 'google-calendar', config })
    }
    between = anew('/elsewhere')
    on.pass(HOUR)
    const answer = await on.list()
    expect([answer.status, await answer.json()]).toMatchObject([409, { code: 'connector_not_ready' }])
    expect([at.seen.refreshes, at.seen.tokens.size]).toEqual([1, 0])
  })

  it('that the vendor has taken back make the install expired, until somebody agrees again', async () => {
    const on = await fixture()
    await on.connect()
    const { id } = await on.detail()
    // A second client uses the refresh token: the server takes the second use for theft and ends the grant.
    const [stolen] = on.at.seen.refreshTokens
    const use = () =>
      fetch(`${on.at.origin}/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'refresh_token',
          refresh_token: stolen!,
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
        }),
      })
    expect((await use()).status).toBe(200)
    expect((await use()).status).toBe(400)
    const answer = await on.list()
    expect(answer.status).toBe(502)
    expect(await answer.json()).toMatchObject({ upstreamMessage: expect.stringContaining('invalid_grant') })
    expect(await on.detail()).toMatchObject({ id, status: 'expired' })
    await on.connect()
    expect(await on.detail()).toMatchObject({ id, status: 'installed' })
    expect((await on.list()).status).toBe(200)
  })

  it('are given back at the end of the install', async () => {
    const on = await fixture()
    await on.connect()
    await on.list()
    const [token] = [...on.at.seen.tokens]
    const works = async () =>
      (await fetch(`${on.at.origin}/calendar/x`, { headers: { authorization: `Bearer ${token}` } })).status
    expect(await works()).toBe(200)
    expect((await on.call('DELETE', '/v1/connectors/google-calendar')).status).toBe(204)
    expect(on.at.seen.revocations).toBe(1)
    expect(await works()).toBe(401)
  })

  it('are given back with the last install of a client: Google ends all that a person granted to it at once', async () => {
    const at = await authorizationServer()
    open.push(at)
    const on = await oauthFixture(at, { oauthHomes: { 'google-calendar': at.home, gmail: at.home } })
    open.push(on)
    await on.connect()
    await on.connect({ connectorId: 'gmail' })
    expect((await on.call('DELETE', '/v1/connectors/gmail')).status).toBe(204)
    expect(at.seen.revocations).toBe(0)
    expect((await on.call('DELETE', '/v1/connectors/google-calendar')).status).toBe(204)
    expect(at.seen.revocations).toBe(1)
  })

  it('that somebody brought along stay theirs at the end of the install', async () => {
    const on = await fixture()
    await on.json(201, 'POST', '/v1/connectors/install', {
      connectorId: 'google-calendar',
      config: { accessToken: 'a', refreshToken: 'r', baseUrl: on.at.origin },
    })
    expect((await on.call('DELETE', '/v1/connectors/google-calendar')).status).toBe(204)
    expect(on.at.seen.revocations).toBe(0)
  })
})

it('a service without any client of its own says how to get one', async () => {
  const made = await api({ masterKey: new Uint8Array(32) })
  open.push(made)
  expect(await made.json(400, 'POST', '/v1/connectors/oauth/start?connector=gmail', {})).toMatchObject({
    error: expect.stringContaining('PLATFORM_OAUTH_GOOGLE_CLIENT_ID'),
  })
})
