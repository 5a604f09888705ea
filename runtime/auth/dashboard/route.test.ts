import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import type { LoggedIn, SetupDone } from '../../../shared/wire/runtime/auth.ts'
import { loggedIn, setupDone } from '../../../shared/wire/runtime/auth.ts'
import { runtimeEndpoints } from '../../../shared/wire/runtime/endpoints.ts'
import { type Fixture, fixture, quickScrypt, type Sent } from '../testing/fixture.ts'

const OWNER = { email: 'Ada@Example.com', password: 'correct horse battery', name: 'Ada' }
const HOUR = 3_600_000

let here: Fixture
beforeEach(async () => {
  here = await fixture({ scrypt: quickScrypt })
})
afterEach(() => here.close())

const post = <T>(path: string, body: unknown, sent: Sent = {}) => here.call<T>('POST', path, { key: '', body, ...sent })
const token = async () => (await here.runtime.setupToken())!

async function setUp(): Promise<SetupDone> {
  const { status, body } = await post<SetupDone>('/auth/setup', { token: await token(), ...OWNER })
  expect([status, body]).toEqual([201, expect.anything()])
  return setupDone.parse(body)
}

const login = (email = OWNER.email, password = OWNER.password, address = 'here') =>
  post<LoggedIn>('/auth/login', { email, password }, { address })

async function session(): Promise<{ cookie: string; csrf: string }> {
  const { headers, body } = await login()
  return { cookie: headers.get('set-cookie')!.split(';')[0]!, csrf: body.csrfToken }
}

describe('setup', () => {
  it('makes the owner and a first key with everything, once', async () => {
    const [one, two] = [await token(), await token()]
    const all = await Promise.all(
      [one, two, one].map(token =>
        post<SetupDone>('/auth/setup', { token, ...OWNER, email: `${token.slice(0, 5)}@x.y` }),
      ),
    )
    expect(all.map(({ status }) => status).toSorted()).toEqual([201, 409, 409])
    const { key, rawKey, user } = setupDone.parse(all.find(({ status }) => status === 201)!.body)
    expect(user).toMatchObject({ role: 'owner', tenantId: 'default' })
    expect(key.scopes).toEqual(['admin', 'platform:admin'])
    expect((await here.call('GET', '/v1/tenants', { key: rawKey })).status).toBe(200)
    expect(await here.runtime.setupToken()).toBeUndefined()
    const again = await post('/auth/setup', { token: 'whatever', ...OWNER })
    expect([again.status, again.headers.get('cache-control')]).toEqual([409, 'no-store'])
    expect((await here.db.execute('select * from setup_tokens')).rows).toEqual([])
    expect((await here.db.execute('select * from api_keys')).rows).toHaveLength(1)
  })

  it('takes the bootstrap key in place of a printed token, once, and no other key', async () => {
    const bootstrapKey = `wb_live_${'b'.repeat(43)}`
    const one = await fixture({ scrypt: quickScrypt, bootstrapKey })
    try {
      const send = (token: string) => one.call<SetupDone>('POST', '/auth/setup', { key: '', body: { token, ...OWNER } })
      expect((await send(`wb_live_${'c'.repeat(43)}`)).status).toBe(401)
      const tries = await Promise.all([send(bootstrapKey), send(bootstrapKey)])
      expect(tries.map(({ status }) => status).toSorted()).toEqual([201, 409])
      expect((await send(bootstrapKey)).status).toBe(409)
      expect((await one.db.execute('select * from setup_tokens')).rows).toEqual([])
    } finally {
      await one.close()
    }
  })

  it('needs a token that was printed, within an hour', async () => {
    const printed = await token()
    const stored = JSON.stringify((await here.db.execute('select * from setup_tokens')).rows)
    expect(stored).not.toContain(printed)
    const changes = async () => (await here.db.execute('select total_changes() as n')).rows[0]!.n
    const before = await changes()
    expect((await post('/auth/setup', { token: 'guess', ...OWNER })).status).toBe(401)
    // Nothing is written for a caller whom nothing is known of.
    expect(await changes()).toBe(before)
    here.clock.advance(HOUR)
    expect((await post('/auth/setup', { token: printed, ...OWNER })).status).toBe(401)
    const weak = await post<{ details: object[] }>('/auth/setup', { token: await token(), ...OWNER, password: 'short' })
    expect([weak.status, weak.body.details]).toEqual([400, [expect.objectContaining({ path: 'password' })]])
  })
})

describe('login', () => {
  it('gives a cookie that scripts cannot read and a token that the cookie does not tell', async () => {
    await setUp()
    const { status, headers, body } = await login(' ada@example.COM ')
    expect(status).toBe(200)
    expect(loggedIn.parse(body).user).toMatchObject({ email: 'ada@example.com', name: 'Ada' })
    const [cookie = '', device] = headers.getSetCookie()
    expect(device).toMatch(
      /^wb_device=[\w-]{43}\.[\w-]{36}\.[\w-]{43}; Max-Age=34560000; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
    expect(cookie).toMatch(/^wb_session=[\w-]{43}; Max-Age=604800; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
    const { body: me } = await here.call<LoggedIn>('GET', '/auth/me', { key: '', headers: { cookie } })
    expect(me).toEqual(body)
    const stored = JSON.stringify((await here.db.execute('select * from logins')).rows)
    expect(stored).not.toContain(cookie.split(/[=;]/)[1])
  })

  it('asks for HTTPS in the cookie everywhere but on this machine', async () => {
    for (const [options, host, secure] of [
      [{}, 'localhost:8080', false],
      [{}, '[::1]:8080', false],
      [{}, 'runtime.example', true],
      [{ publicUrl: 'https://runtime.example' }, 'localhost:8080', true],
    ] as const) {
      const one = await fixture({ scrypt: quickScrypt, ...options })
      const body = JSON.stringify({ token: await one.runtime.setupToken(), ...OWNER })
      const send = (path: string, text: string) =>
        one.runtime.fetch(new Request(`http://${host}${path}`, { method: 'POST', body: text, headers: JSON_TYPE }))
      expect((await send('/auth/setup', body)).status).toBe(201)
      const answer = await send('/auth/login', JSON.stringify({ email: OWNER.email, password: OWNER.password }))
      expect(answer.headers.get('set-cookie')!.includes('Secure'), host).toBe(secure)
      await one.close()
    }
  })

  it('answers a wrong password and an unknown person alike', async () => {
    await setUp()
    const [wrong, unknown] = [await login(OWNER.email, 'wrong password'), await login('eve@example.com')]
    expect([wrong.status, wrong.body]).toEqual([401, unknown.body])
    expect(unknown.status).toBe(401)
    expect(wrong.headers.get('set-cookie')).toBeNull()
  })

  it('is refused at the eleventh try in a minute, for an address and for an e-mail', async () => {
    await setUp()
    for (let i = 0; i < 10; i++) expect((await login(`eve${i}@example.com`, 'x', 'there')).status).toBe(401)
    const refused = await login('eve@example.com', 'x', 'there')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    for (let i = 0; i < 10; i++) await login(OWNER.email, 'x', `address ${i}`)
    expect((await login(OWNER.email, OWNER.password, 'yet another')).status).toBe(429)
    here.clock.advance(60_000)
    expect((await login(OWNER.email, OWNER.password, 'there')).status).toBe(200)
  })

  it('is not refused where its person has logged in before, however many strangers try', async () => {
    await setUp()
    const [, cookie = ''] = (await login()).headers.getSetCookie()
    const [device = ''] = cookie.split(';')
    const from = (email: string, password: string, cookie: string) =>
      post('/auth/login', { email, password }, { address: 'there', headers: { cookie } })
    for (let i = 0; i < 11; i++) await login(OWNER.email, 'x', `address ${i}`)
    expect((await from(OWNER.email, OWNER.password, '')).status).toBe(429)
    expect((await from(OWNER.email, OWNER.password, device)).status).toBe(200)
    expect((await from(OWNER.email, OWNER.password, `${device}x`)).status).toBe(429)
    // It is known for its own person only, and has ten tries as well.
    for (let i = 0; i < 10; i++) await login('bob@example.com', 'x', `address ${20 + i}`)
    expect((await from('bob@example.com', 'x', device)).status).toBe(429)
    for (let i = 0; i < 9; i++) expect((await from(OWNER.email, 'x', device)).status).toBe(401)
    expect((await from(OWNER.email, OWNER.password, device)).status).toBe(429)
  })

  it('is not for pages of another site', async () => {
    await setUp()
    const body = { email: OWNER.email, password: OWNER.password }
    const foreign = await post<{ code: string }>('/auth/login', body, { headers: { 'sec-fetch-site': 'cross-site' } })
    expect([foreign.status, foreign.body.code]).toEqual([403, 'csrf'])
  })
})

const JSON_TYPE = { 'content-type': 'application/json' }

describe('a login', () => {
  it('lasts for twelve hours after its last use and for seven days at most', async () => {
    await setUp()
    const { cookie } = await session()
    const me = async () => (await here.call('GET', '/auth/me', { key: '', headers: { cookie } })).status
    for (let hours = 0; hours < 168 - 11; hours += 11) {
      expect(await me(), `${hours} h`).toBe(200)
      here.clock.advance(11 * HOUR)
    }
    expect(await me()).toBe(200)
    here.clock.advance(3 * HOUR)
    expect(await me()).toBe(401)
    const { cookie: idle } = await session()
    here.clock.advance(12 * HOUR)
    expect((await here.call('GET', '/auth/me', { key: '', headers: { cookie: idle } })).status).toBe(401)
  })

  it('reaches the operations under /ui/api/v1 and not under /v1', async () => {
    const { rawKey } = await setUp()
    const { cookie, csrf } = await session()
    const headers = { cookie, 'x-csrf-token': csrf }
    const made = await here.call<AgentItem>('POST', '/ui/api/v1/agents', { key: '', headers, body: { name: 'a' } })
    expect(made.status).toBe(201)
    expect((await here.call('GET', '/ui/api/v1/agents/a', { key: '', headers: { cookie } })).status).toBe(200)
    expect((await here.call('GET', '/v1/agents/a', { key: '', headers })).status).toBe(401)
    expect((await here.call('GET', '/ui/api/v1/agents/a', { key: rawKey })).status).toBe(401)
    expect((await here.call('GET', '/v1/agents/a', { key: rawKey })).status).toBe(200)
    expect((await here.call('GET', '/ui/api/v1/nothing', { key: '', headers })).status).toBe(404)
  })

  it('writes nothing without its own token', async () => {
    await setUp()
    const [one, two] = [await session(), await session()]
    for (const csrf of [undefined, '', two.csrf, one.csrf.slice(1)]) {
      const headers = { cookie: one.cookie, ...(csrf !== undefined && { 'x-csrf-token': csrf }) }
      for (const [method, path] of [
        ['POST', '/ui/api/v1/agents'],
        ['DELETE', '/ui/api/v1/agents/a'],
        ['POST', '/auth/logout'],
        ['POST', '/auth/password'],
      ] as const) {
        const { status, body } = await here.call(method, path, { key: '', headers })
        expect([status, body.code], `${method} ${path} ${csrf}`).toEqual([403, 'csrf'])
      }
    }
  })

  it('reaches no operation at all that changes something without its own token', async () => {
    await setUp()
    const { cookie } = await session()
    const changing = runtimeEndpoints.filter(({ method, path }) => method !== 'GET' && path.startsWith('/v1/'))
    expect(changing.length).toBeGreaterThan(40)
    for (const { method, path } of changing) {
      const called = `/ui/api${path.replaceAll(/\{\w+\}/g, '01900000-0000-7000-8000-000000000000')}`
      const body = { key: '', headers: { cookie }, body: {} }
      const answer = await here.call(method, called, body)
      expect([answer.status, answer.body.code], `${method} ${called}`).toEqual([403, 'csrf'])
    }
  })

  it('pages with links to where it was', async () => {
    await setUp()
    const { cookie, csrf } = await session()
    for (const name of ['a', 'b'])
      await here.call('POST', '/ui/api/v1/agents', {
        key: '',
        headers: { cookie, 'x-csrf-token': csrf },
        body: { name },
      })
    const { headers } = await here.call('GET', '/ui/api/v1/agents?limit=1', { key: '', headers: { cookie } })
    expect(headers.get('link')).toMatch(/^<\/ui\/api\/v1\/agents\?limit=1&cursor=/)
  })

  it('has the scopes of its role', async () => {
    await setUp()
    const { cookie, csrf } = await session()
    const status = async (method: string, path: string, body?: object) =>
      (await here.call(method, path, { key: '', headers: { cookie, 'x-csrf-token': csrf }, ...(body && { body }) }))
        .status
    const seen: Record<string, number[]> = {}
    for (const role of ['owner', 'member', 'viewer']) {
      await here.db.execute({ sql: 'update users set role = ?', args: [role] })
      seen[role] = [
        await status('GET', '/ui/api/v1/agents'),
        await status('POST', '/ui/api/v1/agents', { name: 'a' }),
        await status('POST', '/ui/api/v1/api-keys', { name: 'a' }),
        await status('GET', '/ui/api/v1/tenants'),
      ]
    }
    expect(seen).toEqual({
      owner: [200, 201, 201, 200],
      member: [200, 201, 403, 403],
      viewer: [200, 403, 403, 403],
    })
  })

  it('ends with logout, and with a change of the password made elsewhere', async () => {
    await setUp()
    const [one, two, three] = [await session(), await session(), await session()]
    const send = (path: string, by: typeof one, body: object = {}) =>
      post(path, body, { headers: { cookie: by.cookie, 'x-csrf-token': by.csrf } })
    const out = await send('/auth/logout', one)
    expect([out.status, out.headers.get('set-cookie')]).toEqual([204, expect.stringMatching(/^wb_session=; Max-Age=0/)])
    expect((await send('/auth/logout', one)).status).toBe(401)

    const next = { currentPassword: OWNER.password, newPassword: 'another horse battery' }
    const wrong = await send('/auth/password', two, { ...next, currentPassword: 'guess' })
    expect([wrong.status, wrong.body]).toMatchObject([400, { details: [{ path: 'currentPassword' }] }])
    expect((await send('/auth/password', two, next)).status).toBe(204)
    const alive = async (by: typeof one) => (await here.call('GET', '/auth/me', { key: '', headers: by })).status
    expect([await alive(two), await alive(three)]).toEqual([200, 401])
    expect((await login()).status).toBe(401)
    expect((await login(OWNER.email, next.newPassword)).status).toBe(200)
  })
})
