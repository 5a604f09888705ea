import { afterEach, describe, expect, it } from 'vitest'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { OAuthStarted } from '../../shared/wire/runtime/connector.ts'
import type { ErrorBody } from '../../shared/wire/runtime/error.ts'
import { type McpGrant, mcpGrant } from '../../shared/wire/runtime/mcp-grant.ts'
import { browse } from '../runtime/oauth-fixture.ts'
import { demandingServer } from './demanding-server.ts'
import { mcpFixture } from './mcp-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const note = (text: string) => says('', [{ name: 'mcp__notes__note', arguments: { text } }])
const GRANTS = '/v1/mcp-servers/grants'
const START = '/v1/mcp-servers/oauth/start'

/** An agent of a server that demands tokens, and a clock that can be put forward. */
async function fixture(answers = [note('a'), says('done')]) {
  const remote = await demandingServer()
  open.push(remote)
  let ahead = 0
  const clock = { ...systemClock, now: () => new Date(Date.now() + ahead) }
  const servers = [{ name: 'notes', url: remote.url, allow: ['*'] }]
  const made = await mcpFixture([remote.origin, remote.issuer], servers, answers, { clock })
  open.push(made)
  const begin = (more: object = {}) => made.json<OAuthStarted>(200, 'POST', START, { url: remote.url, ...more })
  const back = (search: string) =>
    made.runtime.fetch(new Request(`http://localhost/auth/connectors/callback${search}`, { redirect: 'manual' }))
  return {
    ...made,
    remote,
    begin,
    back,
    async connect() {
      const { redirectUrl } = await begin()
      return back((await browse(remote.issuer, redirectUrl)).search)
    },
    grants: () => made.json<McpGrant[]>(200, 'GET', GRANTS),
    pass(ms: number) {
      ahead += ms
    },
  }
}

describe('an MCP server that asks for OAuth', () => {
  it('is connected by a person: discovered, registered at, agreed to with PKCE, and then used by a run', async () => {
    const on = await fixture()
    const { redirectUrl } = await on.begin({ redirectAfter: '/ui/connectors' })
    const { searchParams, origin } = new URL(redirectUrl)
    expect(origin).toBe(on.remote.issuer)
    expect(Object.fromEntries(searchParams)).toMatchObject({
      resource: on.remote.url,
      scope: 'notes offline_access',
      code_challenge_method: 'S256',
      prompt: 'consent',
      redirect_uri: 'http://localhost/auth/connectors/callback',
    })
    const returned = await on.back((await browse(on.remote.issuer, redirectUrl)).search)
    expect([returned.status, returned.headers.get('location')]).toEqual([
      302,
      '/ui/connectors?connector=mcp&status=installed',
    ])
    const [grant, ...others] = await on.grants()
    expect([mcpGrant.parse(grant), others]).toMatchObject([
      { url: on.remote.url, issuer: on.remote.issuer, status: 'granted' },
      [],
    ])

    const { run, journal } = await on.run()
    expect(run.status).toBe('succeeded')
    expect(on.remote.seen).toMatchObject({ registrations: 1, exchanges: 1, refreshes: 0, calls: 1 })
    // The server prints its token; it reaches no reader.
    expect(on.told(1)).toMatchObject([{ failed: false, content: { content: [{ text: 'noted a for Bearer ***' }] } }])
    const stored = JSON.stringify((await on.db.execute('select * from mcp_grants')).rows)
    expect(on.remote.seen.tokens.size).toBe(1)
    for (const token of on.remote.seen.tokens) {
      for (const text of [stored, JSON.stringify(journal), JSON.stringify(on.asked)]) expect(text).not.toContain(token)
    }
  })

  it('says how to connect it where nobody has', async () => {
    const on = await fixture()
    const { run } = await on.run()
    expect(run.error).toMatchObject({ code: 'mcp_failed', message: expect.stringContaining(`POST ${START}`) })
  })

  it('gets a new token before the old one ends, once for all runs that want it', async () => {
    const on = await fixture()
    await on.connect()
    on.pass(3_600_000 - 30_000)
    const runs = await Promise.all([on.start(), on.start(), on.start()])
    for (const one of runs) expect((await on.ended(one)).run.status).toBe('succeeded')
    expect(on.remote.seen).toMatchObject({ refreshes: 1, calls: 3 })
    // The refresh token was rotated, and the new one is what is used next.
    on.pass(3_600_000)
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.remote.seen.refreshes).toBe(2)
  })

  it('that refuses a token early is called again with a new one, and the call is made once', async () => {
    const on = await fixture([note('a'), says('done')])
    await on.connect()
    expect((await on.run()).run.status).toBe('succeeded')
    await on.remote.forget()
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.remote.seen).toMatchObject({ refreshes: 1, calls: 2 })
  })

  it('whose tokens cannot be renewed any more is connected anew, and keeps its id', async () => {
    const on = await fixture()
    await on.connect()
    expect((await on.run()).run.status).toBe('succeeded')
    await on.remote.forget()
    on.remote.seen.refuses = true
    for (const _ of ['once', 'and again']) {
      const { steps, journal } = await on.run()
      expect(steps.find(({ stepId }) => stepId === 'mcp-1-1')).toMatchObject({ status: 'failed' })
      expect(JSON.stringify(journal)).toContain(`connect it by OAuth (POST ${START})`)
    }
    const [expired] = await on.grants()
    expect(expired).toMatchObject({ status: 'expired' })
    on.remote.seen.refuses = false
    await on.connect()
    expect(await on.grants()).toMatchObject([{ id: expired!.id, status: 'granted' }])
    expect((await on.run()).run.status).toBe('succeeded')
  })

  it('gets its tokens back when the grant is taken away, which another tenant cannot do', async () => {
    const on = await fixture()
    await on.connect()
    const [grant] = await on.grants()
    const { id } = await on.json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })
    const { rawKey } = await on.json<{ rawKey: string }>(201, 'POST', `/v1/tenants/${id}/api-keys`, { name: 'k' })
    const foreign = { headers: { authorization: `Bearer ${rawKey}` } }
    const ask = (method: string, path: string) =>
      on.runtime.fetch(new Request(`http://localhost${path}`, { method, ...foreign }))
    expect(await (await ask('GET', GRANTS)).json()).toEqual([])
    expect((await ask('DELETE', `${GRANTS}/${grant!.id}`)).status).toBe(403)
    expect((await on.call('DELETE', `${GRANTS}/${grant!.id}`)).status).toBe(204)
    expect(on.remote.seen.revocations).toBe(1)
    expect((await on.run()).run.error).toMatchObject({ code: 'mcp_failed' })
    expect((await on.call('DELETE', `${GRANTS}/${grant!.id}`)).status).toBe(404)
  })

  it('is not connected where the round is declined, wrong, or used', async () => {
    const on = await fixture()
    const { state } = await on.begin()
    expect((await on.back('?code=c&state=wrong')).status).toBe(400)
    // It names itself, so an answer that does not is from another server.
    const silent = await on.begin()
    const search = new URLSearchParams((await browse(on.remote.issuer, silent.redirectUrl)).search)
    search.delete('iss')
    expect((await on.back(`?${search}`)).status).toBe(502)
    const declined = await on.back(`?error=access_denied&state=${state}`)
    expect(declined.headers.get('location')).toBe('/ui/connectors?connector=mcp&status=denied')
    expect((await on.back(`?code=c&state=${state}`)).status).toBe(400)
    expect(await on.grants()).toEqual([])
  })
})

describe('an address', () => {
  it.each([
    [{ url: 'http://169.254.169.254/mcp' }, 'url', 'metadata address'],
    [{ url: 'ftp://a.example' }, 'url', 'http'],
    [{ redirectAfter: '//evil.example' }, 'redirectAfter', 'a path of this service'],
    [{ scope: 'a"b' }, 'scope', 'scopes with a space'],
    [{ color: 'red' }, 'color', 'unknown key'],
  ])('that cannot be is refused: %j', async (more, path, message) => {
    const on = await fixture()
    const found = await on.json<ErrorBody>(400, 'POST', START, { url: on.remote.url, ...more })
    expect(found.details).toMatchObject([{ path, message: expect.stringContaining(message) }])
  })

  it('of a server that asks for nothing is a 400 that says so', async () => {
    const on = await fixture()
    // The authorization server is no MCP server, and answers 404.
    const found = await on.json<ErrorBody>(400, 'POST', START, { url: `${on.remote.issuer}/nothing` })
    expect(found.error).toContain('the server asks for no OAuth: it answered 404')
  })
})
