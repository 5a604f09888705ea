import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AuditEntry } from '../../shared/wire/runtime/audit.ts'
import { type LoggedIn, type SetupDone, tenantChoice } from '../../shared/wire/runtime/auth.ts'
import type { ErrorBody } from '../../shared/wire/runtime/error.ts'
import { type Person, type PersonLink, person, personLink } from '../../shared/wire/runtime/user.ts'
import { type Fixture, fixture, quickScrypt, type Sent } from '../auth/testing/fixture.ts'

const DAY = 86_400_000
const PASSWORD = 'correct horse battery'
const GRACE = { email: 'Grace@Example.com', name: 'Grace', role: 'viewer' }

let here: Fixture
beforeEach(async () => {
  here = await fixture({ scrypt: quickScrypt })
})
afterEach(() => here.close())

const post = <T>(path: string, body: unknown, sent: Sent = {}) => here.call<T>('POST', path, { key: '', body, ...sent })
const accept = (token: string, password = PASSWORD) => post<{ user: Person }>('/auth/invitation', { token, password })
const login = (email: string, password = PASSWORD) => post<LoggedIn>('/auth/login', { email, password })

async function invite(body: object = GRACE, sent: Sent = {}): Promise<PersonLink> {
  const { status, body: made } = await here.call<PersonLink>('POST', '/v1/users', { body, ...sent })
  expect([status, made]).toEqual([201, expect.anything()])
  return personLink.parse(made)
}

/** A person with a password, and the headers of a login of theirs. */
async function joined(body: { email: string } = GRACE) {
  const { user, linkToken } = await invite(body)
  expect((await accept(linkToken)).status).toBe(200)
  return { id: user.id, headers: await headersOf(body.email) }
}

async function headersOf(email: string): Promise<Record<string, string>> {
  const { status, headers, body } = await login(email)
  expect(status).toBe(200)
  return { cookie: headers.get('set-cookie')!.split(';')[0]!, 'x-csrf-token': body.csrfToken }
}

const patch = (id: string, body: object, sent: Sent = {}) =>
  here.call<Person>('PATCH', `/v1/users/${id}`, { body, ...sent })

describe('an invitation', () => {
  it('is a link that is good once, sets a password, and lets in with the scopes of the role', async () => {
    const { user, link, linkToken } = await invite()
    expect(user).toMatchObject({ email: 'grace@example.com', name: 'Grace', role: 'viewer', status: 'invited' })
    expect(link).toBe(`http://local/invite#token=${linkToken}`)
    expect(JSON.stringify((await here.db.execute('select * from user_links')).rows)).not.toContain(linkToken)
    for (const password of ['', 'x', PASSWORD]) expect((await login(GRACE.email, password)).status).not.toBe(200)
    const both = await Promise.all([accept(linkToken), accept(linkToken, 'another long password')])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 401])
    const set = both[0].status === 200 ? PASSWORD : 'another long password'
    expect((await accept(linkToken)).status).toBe(401)
    const { status, headers } = await login(' grace@EXAMPLE.com', set)
    expect(status).toBe(200)
    const sent = { key: '', headers: { cookie: headers.get('set-cookie')!.split(';')[0]! } }
    expect((await here.call('GET', '/ui/api/v1/agents', sent)).status).toBe(200)
    expect((await here.call('GET', '/ui/api/v1/users', sent)).status).toBe(403)
    const { body } = await here.call<Person[]>('GET', '/v1/users')
    expect(body.map(one => person.parse(one))).toEqual([
      expect.objectContaining({ status: 'active', lastLoginAt: expect.any(String) }),
    ])
  })

  it('is over after three days, at a new link, and when the person is disabled or removed', async () => {
    const { user, linkToken } = await invite()
    here.clock.advance(3 * DAY)
    expect((await accept(linkToken)).status).toBe(401)
    const again = async () =>
      (await here.call<PersonLink>('POST', `/v1/users/${user.id}/link`, { body: {} })).body.linkToken
    const [second, third] = [await again(), await again()]
    expect((await accept(second)).status).toBe(401)
    expect((await patch(user.id, { disabled: true })).body.status).toBe('disabled')
    expect((await accept(third)).status).toBe(401)
    expect((await here.call('POST', `/v1/users/${user.id}/link`, { body: {} })).status).toBe(409)
    expect((await patch(user.id, { disabled: false })).body.status).toBe('invited')
    // A link that was taken back stays so.
    expect((await accept(third)).status).toBe(401)
    const last = await again()
    expect((await here.call('DELETE', `/v1/users/${user.id}`)).status).toBe(204)
    expect((await accept(last)).status).toBe(401)
    expect((await here.call('GET', `/v1/users/${user.id}`)).status).toBe(404)
  })

  it('says so when the address is taken, in whatever case, and leaves the Idempotency-Key free', async () => {
    await invite()
    const headers = { 'idempotency-key': 'one' }
    const body = { ...GRACE, email: 'GRACE@example.com' }
    const taken = await here.call('POST', '/v1/users', { body, headers })
    expect([taken.status, taken.body]).toMatchObject([409, { code: 'in_use', details: [{ path: 'email' }] }])
    await invite({ ...GRACE, email: 'other@example.com' }, { headers })
    const replay = await here.call<PersonLink>('POST', '/v1/users', {
      body: { ...GRACE, email: 'other@example.com' },
      headers,
    })
    expect(replay.body).toMatchObject({ linkToken: '***', link: '***' })
  })

  it('takes roles below the owner only', async () => {
    const { status, body } = await here.call('POST', '/v1/users', { body: { ...GRACE, role: 'owner' } })
    expect([status, body.details]).toMatchObject([400, [{ path: 'role' }]])
    const { user } = await invite()
    expect((await patch(user.id, { role: 'owner' })).status).toBe(400)
  })

  it('is refused at the eleventh try in a minute', async () => {
    for (let i = 0; i < 10; i++) expect((await accept(`guess ${i}`)).status).toBe(401)
    expect((await accept('guess')).status).toBe(429)
  })
})

describe('a person', () => {
  it('who is disabled is out at once, with every login, and comes back with the same password', async () => {
    const { id, headers } = await joined()
    const other = await headersOf(GRACE.email)
    const me = async (sent: Record<string, string>) =>
      (await here.call('GET', '/auth/me', { key: '', headers: sent })).status
    expect([await me(headers), await me(other)]).toEqual([200, 200])
    await patch(id, { disabled: true })
    expect([await me(headers), await me(other)]).toEqual([401, 401])
    const [disabled, wrong] = [await login(GRACE.email), await login(GRACE.email, 'not the password')]
    expect([disabled.status, disabled.body]).toEqual([401, wrong.body])
    expect(disabled.headers.get('set-cookie')).toBeNull()
    await patch(id, { disabled: false })
    // What was ended stays ended.
    expect(await me(headers)).toBe(401)
    expect((await login(GRACE.email)).status).toBe(200)
  })

  it('has the scopes of a new role from the next call on', async () => {
    const { id, headers } = await joined()
    const make = async () =>
      (await here.call('POST', '/ui/api/v1/agents', { key: '', headers, body: { name: 'a' } })).status
    expect(await make()).toBe(403)
    await patch(id, { role: 'member', name: 'Rear Admiral' })
    expect(await make()).toBe(201)
    await patch(id, { role: 'viewer' })
    expect(await make()).toBe(403)
    const { body } = await here.call<Person>('GET', `/v1/users/${id}`)
    expect(body).toMatchObject({ name: 'Rear Admiral', role: 'viewer' })
  })

  it('gets a forgotten password anew by a link, which ends the logins of whoever had it', async () => {
    const { id, headers } = await joined()
    const { body } = await here.call<PersonLink>('POST', `/v1/users/${id}/link`, { body: {} })
    // Until the link is used, nothing has changed.
    expect((await here.call('GET', '/auth/me', { key: '', headers })).status).toBe(200)
    expect((await accept(body.linkToken, 'another long password')).status).toBe(200)
    expect((await here.call('GET', '/auth/me', { key: '', headers })).status).toBe(401)
    expect((await login(GRACE.email)).status).toBe(401)
    expect((await login(GRACE.email, 'another long password')).status).toBe(200)
  })
})

describe('the owner', () => {
  async function owner(): Promise<string> {
    const token = await here.runtime.setupToken()
    const body = { token, email: 'ada@example.com', password: PASSWORD, name: 'Ada' }
    return (await post<SetupDone>('/auth/setup', body)).body.user.id
  }

  it('stays, whoever asks', async () => {
    const id = await owner()
    for (const change of [{ disabled: true }, { role: 'viewer' }]) expect((await patch(id, change)).status).toBe(409)
    expect((await here.call('DELETE', `/v1/users/${id}`)).status).toBe(409)
    expect((await patch(id, { name: 'Ada L.' })).body).toMatchObject({
      name: 'Ada L.',
      role: 'owner',
      status: 'active',
    })
  })

  it('cannot be taken over by a key that may do less', async () => {
    const id = await owner()
    for (const scopes of [[], ['admin']] as const) {
      const { rawKey: key } = await here.newKey({ scopes: [...scopes] })
      const link = await here.call('POST', `/v1/users/${id}/link`, { key, body: {} })
      expect([link.status, link.body.code]).toEqual([403, 'forbidden_scope'])
      expect((await patch(id, { name: 'Eve' }, { key })).status).toBe(403)
    }
    expect((await here.call('POST', `/v1/users/${id}/link`, { body: {} })).status).toBe(201)
  })
})

it('people of a tenant are nobody to another, and none but an administrator sees them', async () => {
  const { user } = await invite()
  const other = await here.newTenant()
  const { rawKey: theirs } = await here.newKey({}, other)
  const foreign = await here.call('GET', `/v1/users/${user.id}`, { key: theirs })
  expect([foreign.status, foreign.body.code]).toEqual([403, 'forbidden_tenant'])
  expect((await patch(user.id, { disabled: true }, { key: theirs })).status).toBe(403)
  expect((await here.call<Person[]>('GET', '/v1/users', { key: theirs })).body).toEqual([])
  const { rawKey: lesser } = await here.newKey({ scopes: ['read', 'write', 'keys:write', 'nodes:write'] })
  expect((await here.call('GET', '/v1/users', { key: lesser })).status).toBe(403)
  // The people they invite work there, and has none of the installation's own rights.
  const made = await invite({ email: 'eve@example.com', name: 'Eve' }, { key: theirs })
  await accept(made.linkToken)
  const headers = await headersOf('eve@example.com')
  await here.call('POST', '/ui/api/v1/agents', { key: '', headers, body: { name: 'hers' } })
  expect((await here.call('GET', '/v1/agents/hers', { key: theirs })).status).toBe(200)
  expect((await here.call('GET', '/ui/api/v1/tenants', { key: '', headers })).status).toBe(403)
})

describe('an e-mail in two tenants', () => {
  const OTHER = 'another long password'

  /** A tenant beside the first, its key, and Grace in it with a password. */
  async function elsewhere(password: string, name = 'other') {
    const tenantId = await here.newTenant(name)
    const { rawKey: key } = await here.newKey({}, tenantId)
    here.clock.advance(1)
    const { user, linkToken } = await invite(GRACE, { key })
    expect((await accept(linkToken, password)).status).toBe(200)
    return { tenantId, key, id: user.id }
  }

  const loginTo = (tenantId: string, password: string, email = GRACE.email) =>
    post<LoggedIn & ErrorBody>('/auth/login', { email, password, tenantId })

  const me = async (headers: Headers) => {
    const cookie = headers.get('set-cookie')!.split(';')[0]!
    return (await here.call<LoggedIn>('GET', '/auth/me', { key: '', headers: { cookie } })).body.user
  }

  it('is two people, and neither tenant learns of the other', async () => {
    await joined()
    const { key, id, tenantId } = await elsewhere(OTHER)
    const { body: theirs } = await here.call<Person[]>('GET', '/v1/users', { key })
    expect(theirs.map(one => [one.id, one.tenantId])).toEqual([[id, tenantId]])
    expect((await here.call<Person[]>('GET', '/v1/users')).body.map(one => one.tenantId)).toEqual(['default'])
    const again = await here.call('POST', '/v1/users', { key, body: GRACE })
    expect([again.status, again.body.code]).toEqual([409, 'in_use'])
    expect(again.body.error).toContain('of this tenant')
  })

  it('logs in where the password fits, with a session of that tenant alone', async () => {
    const { id } = await joined()
    const other = await elsewhere(OTHER)
    const [first, second] = [await login(GRACE.email), await login(GRACE.email, OTHER)]
    expect(await me(first.headers)).toMatchObject({ id, tenantId: 'default' })
    expect(await me(second.headers)).toMatchObject({ id: other.id, tenantId: other.tenantId })
    await here.call('POST', '/v1/agents', { key: other.key, body: { name: 'hers' } })
    const sees = async ({ headers }: { headers: Headers }) => {
      const sent = { key: '', headers: { cookie: headers.get('set-cookie')!.split(';')[0]! } }
      return (await here.call<{ name: string }[]>('GET', '/ui/api/v1/agents', sent)).body.map(({ name }) => name)
    }
    expect([await sees(first), await sees(second)]).toEqual([[], ['hers']])
    // Neither is out where the other is.
    await patch(id, { disabled: true })
    expect((await login(GRACE.email)).status).toBe(401)
    expect((await login(GRACE.email, OTHER)).status).toBe(200)
  })

  it('asks for the tenant where the password fits several, and only then', async () => {
    await joined()
    const { tenantId } = await elsewhere(PASSWORD, 'Sales & Co')
    const several = await post<ErrorBody>('/auth/login', { email: GRACE.email, password: PASSWORD })
    expect(several.status).toBe(409)
    expect(several.headers.getSetCookie()).toEqual([])
    const { tenants } = tenantChoice.parse(several.body)
    expect(tenants).toEqual([
      { id: 'default', name: 'default' },
      { id: tenantId, name: 'Sales & Co' },
    ])
    for (const tenant of ['default', tenantId]) {
      const chosen = await loginTo(tenant, PASSWORD)
      expect([chosen.status, chosen.body.user.tenantId]).toEqual([200, tenant])
      expect(await me(chosen.headers)).toMatchObject({ tenantId: tenant })
    }
    const wrong = await login(GRACE.email, 'not the password')
    const unknown = await login('nobody@example.com')
    expect([wrong.status, wrong.body]).toEqual([401, unknown.body])
  })

  it('answers a tenant without the account as it answers a wrong password', async () => {
    await joined()
    const { tenantId } = await elsewhere(OTHER)
    const third = await here.newTenant('third')
    const wrong = await login(GRACE.email, 'not the password')
    for (const [tenant, password] of [
      [third, PASSWORD],
      ['no such tenant', PASSWORD],
      ['a NUL \0', PASSWORD],
      [tenantId, PASSWORD],
      ['default', OTHER],
    ] as const) {
      const refused = await loginTo(tenant, password)
      expect([refused.status, refused.body], tenant).toEqual([401, wrong.body])
      expect(refused.headers.getSetCookie()).toEqual([])
    }
  })

  it('takes one derivation of a password, in however many tenants it is known', async () => {
    let derived = 0
    await here.close()
    here = await fixture({
      scrypt: async (...of) => {
        derived += 1
        return quickScrypt(...of)
      },
    })
    const cost = async (email: string, password: string) => {
      here.clock.advance(60_000)
      const before = derived
      await login(email, password)
      return derived - before
    }
    expect(await cost(GRACE.email, PASSWORD)).toBe(1)
    const { id } = await joined()
    const [other] = [await elsewhere(OTHER), await elsewhere(PASSWORD, 'third')]
    expect(await cost(GRACE.email, PASSWORD)).toBe(1)
    expect(await cost(GRACE.email, 'not the password')).toBe(1)
    expect(await cost('nobody@example.com', PASSWORD)).toBe(1)
    // Also after one of them has set another password.
    const { body } = await here.call<PersonLink>('POST', `/v1/users/${id}/link`, { body: {} })
    expect((await accept(body.linkToken, 'a third long password')).status).toBe(200)
    const { headers, body: loggedIn } = await login(GRACE.email, OTHER)
    const own = { cookie: headers.get('set-cookie')!.split(';')[0]!, 'x-csrf-token': loggedIn.csrfToken }
    const change = { currentPassword: OTHER, newPassword: 'a fourth long password' }
    expect((await post('/auth/password', change, { headers: own })).status).toBe(204)
    expect(await cost(GRACE.email, 'a third long password')).toBe(1)
    expect((await login(GRACE.email, 'a third long password')).body.user.tenantId).toBe('default')
    expect((await login(GRACE.email, 'a fourth long password')).body.user.tenantId).toBe(other?.tenantId)
  })

  it('gives the administrator of one tenant no tries at the account of another', async () => {
    await joined()
    await elsewhere(OTHER)
    const device = (await login(GRACE.email, OTHER)).headers.getSetCookie()[1]!.split(';')[0]!
    const from = async (password: string) => {
      const sent = { address: 'there', headers: { cookie: device } }
      return (await post<LoggedIn>('/auth/login', { email: GRACE.email, password }, sent)).status
    }
    // In its own tries it is known for the one account, and a stranger to the other.
    for (let i = 0; i < 10; i++) await post('/auth/login', { email: GRACE.email, password: 'x' }, { address: `a ${i}` })
    expect(await from(PASSWORD)).toBe(401)
    expect(await from(OTHER)).toBe(200)
    here.clock.advance(60_000)
    expect(await from(PASSWORD)).toBe(200)
  })

  it('is the owner’s as well: setup and a person of another tenant do not meet', async () => {
    const tenantId = await here.newTenant()
    const { rawKey: key } = await here.newKey({}, tenantId)
    await invite({ email: 'ada@example.com', name: 'Ada' }, { key })
    const setup = async (email: string) => {
      const body = { token: await here.runtime.setupToken(), email, password: PASSWORD, name: 'Ada' }
      return post<SetupDone & ErrorBody>('/auth/setup', body)
    }
    // Who is invited into the owner's own tenant stands in the way, and setup says so.
    await invite({ email: 'eve@example.com', name: 'Eve' })
    const taken = await setup('eve@example.com')
    expect([taken.status, taken.body]).toMatchObject([409, { code: 'in_use', details: [{ path: 'email' }] }])
    const made = await setup('ada@example.com')
    expect([made.status, made.body.user.tenantId]).toEqual([201, 'default'])
    expect((await login('ada@example.com')).body.user.tenantId).toBe('default')
  })
})

it('every change of them is in the audit log, and no secret of theirs', async () => {
  const { id } = await joined()
  await patch(id, { role: 'member', disabled: true })
  await here.call('POST', `/v1/users/${id}/link`, { body: {} })
  await here.call('DELETE', `/v1/users/${id}`)
  const { body } = await here.call<AuditEntry[]>('GET', '/v1/audit-log')
  expect(body.toReversed().map(({ action, object, fields, actor }) => [action, object ?? fields ?? actor])).toEqual([
    ['inviteUser', id],
    ['acceptInvitation', id],
    ['updateUser', ['disabled', 'role']],
    ['deleteUser', expect.any(String)],
  ])
  expect(JSON.stringify(body)).not.toContain(PASSWORD)
})

it('a list goes on where its page ended', async () => {
  for (const name of ['a', 'b', 'c']) await invite({ name, email: `${name}@example.com` })
  const { body, headers } = await here.call<Person[]>('GET', '/v1/users?limit=2')
  const next = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1]
  const { body: rest } = await here.call<Person[]>('GET', next!)
  expect([...body, ...rest].map(({ name }) => name).toSorted()).toEqual(['a', 'b', 'c'])
  const { rows } = await here.db.execute(
    "explain query plan select * from users where tenant_id = 'default' order by created_ms desc, id desc limit 3",
  )
  expect(rows.map(row => String(row.detail)).join()).toMatch(/^SEARCH users USING INDEX users_list[^,]*$/)
})
