import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MENU } from '../../shared/browser/menu.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { LoggedIn, SetupDone } from '../../shared/wire/runtime/auth.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { PersonLink } from '../../shared/wire/runtime/user.ts'
import { expectWithin } from '../../tests/crowding.ts'
import { type Fixture, fixture } from '../auth/testing/fixture.ts'
import type { Surveying } from '../connectors/openapi/survey.ts'
import { petsDocument } from '../connectors/testing/pets.ts'
import { dashboardFiles } from './files.gen.ts'
import { MARKS_SQL } from './store.ts'

const OWNER = { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada <b>' }
let here: Fixture

beforeEach(async () => {
  here = await fixture()
})
afterEach(() => here.close())

interface Visit {
  cookies?: Record<string, string>
  form?: Record<string, string>
  headers?: Record<string, string>
}

async function visit(path: string, { cookies = {}, form, headers = {} }: Visit = {}) {
  const cookie = Object.entries(cookies)
    .map(([name, value]) => `${name}=${value}`)
    .join('; ')
  const request = new Request(`http://localhost${path}`, {
    method: form === undefined ? 'GET' : 'POST',
    headers: {
      ...(cookie && { cookie }),
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    },
    ...(form && { body: String(new URLSearchParams(form)) }),
  })
  const answer = await here.runtime.fetch(request)
  const set = Object.fromEntries(
    answer.headers.getSetCookie().map(one => one.split(';', 1)[0]!.split('=') as [string, string]),
  )
  const { status } = answer
  return {
    status,
    to: answer.headers.get('location'),
    set,
    all: answer.headers.getSetCookie(),
    text: await answer.text(),
  }
}

async function setUp(): Promise<void> {
  const token = (await here.runtime.setupToken())!
  const { status } = await here.call<SetupDone>('POST', '/auth/setup', { key: '', body: { token, ...OWNER } })
  expect(status).toBe(201)
}

const csrfIn = (text: string) => /name="csrf" value="([\w-]+)"/.exec(text)![1]!

/** Logs in as a browser without scripts does. */
async function logIn(cookies: Record<string, string> = {}, more: Record<string, string> = {}) {
  const form = await visit('/login')
  return visit('/login', {
    cookies: { ...form.set, ...cookies },
    form: { csrf: csrfIn(form.text), email: OWNER.email, password: OWNER.password, ...more },
  })
}

describe('the pages', () => {
  it('lead to the setup while there is no owner, and to the login afterwards, by relative addresses', async () => {
    expect(await visit('/')).toMatchObject({ status: 303, to: './setup' })
    expect(await visit('/login')).toMatchObject({ status: 303, to: './setup' })
    await setUp()
    expect((await visit('/setup')).text).toContain('already has an owner')
    expect(await visit('/runs?status=failed')).toMatchObject({ to: './login?next=runs%3Fstatus%3Dfailed' })
    expect(await visit('/runs/abc')).toMatchObject({ status: 303, to: '../login?next=runs%2Fabc' })
  })

  it('hold no absolute address, no inline script and no inline style', async () => {
    await setUp()
    const { set } = await logIn()
    for (const { href } of MENU) {
      const { status, text } = await visit(`/${href}`, { cookies: set })
      expect(status, href).toBe(200)
      expect(text).toContain('Ada &lt;b&gt;')
      expect(
        [...text.matchAll(/ (?:href|src|action)="([^"]*)"/g)].filter(([, to]) => !/^(?:\.\.?\/|#)/.test(to!)),
      ).toEqual([])
      expect(text).not.toMatch(/<style|style=|<script(?! type="module" src=)|\son\w+=/)
    }
  })

  it('can be read without a script', async () => {
    await setUp()
    const { set: cookies } = await logIn()
    await here.call('POST', '/v1/agents', { body: { name: 'echo', manifest: { model: 'demo/echo' } } })
    const { body } = await here.call<Run>('POST', '/v1/runs', {
      body: { agentName: 'echo', input: { prompt: 'Hé <b>' } },
    })
    await here.runtime
      .fetch(
        new Request(`http://localhost/ui/api/v1/runs/${body.id}/events`, { headers: { cookie: cookieText(cookies) } }),
      )
      .then(answer => answer.text())
    const list = (await visit('/runs', { cookies })).text
    expect(list).toContain(`href="./runs/${body.id}"`)
    const run = (await visit(`/runs/${body.id}`, { cookies })).text
    expect(run).toMatch(/model-1 demo\/echo/)
    expect(run).toContain('You said: Hé &lt;b&gt;')
    expect(run).toContain(`../ui/api/v1/runs/${body.id}/journal`)
    expect((await visit('/agents/echo', { cookies })).text).toContain('demo/echo')
  })

  it('say what the API says where something is not there, or is another tenant’s', async () => {
    await setUp()
    const { set: cookies } = await logIn()
    const none = await visit('/runs/01900000-0000-7000-8000-000000000000', { cookies })
    expect([none.status, none.text]).toEqual([404, expect.stringContaining('run not found')])
    const key = (await here.newKey({}, await here.newTenant())).rawKey
    await here.call('POST', '/v1/agents', { key, body: { name: 'theirs', manifest: { model: 'demo/echo' } } })
    const { body } = await here.call<Run>('POST', '/v1/runs', { key, body: { agentName: 'theirs', input: {} } })
    const foreign = await visit(`/runs/${body.id}`, { cookies })
    expect([foreign.status, foreign.text]).toEqual([403, expect.stringContaining('belongs to another tenant')])
    expect((await visit('/agents', { cookies })).text).not.toContain('theirs')
  })
})

const cookieText = (cookies: Record<string, string>) =>
  Object.entries(cookies)
    .map(([name, value]) => `${name}=${value}`)
    .join('; ')

describe('what a page has beside its data', () => {
  it('is a way to the panel of a router in the same process, and none where there is no such router', async () => {
    await setUp()
    expect((await visit('/', { cookies: (await logIn()).set })).text).not.toContain('>Router<')
    await here.close()
    here = await fixture({ routerPanel: () => 'http://127.0.0.1:8090/panel' })
    await setUp()
    expect((await visit('/', { cookies: (await logIn()).set })).text).toContain(
      '<a href="http://127.0.0.1:8090/panel"><svg class="icon" aria-hidden="true"><use href="#i-router"></use></svg><span>Router</span></a>',
    )
  })

  it('looks into an OpenAPI document without installing it, for who is logged in and holds the token', async () => {
    await setUp()
    const { set } = await logIn()
    const token = /data-csrf="([\w-]+)"/.exec((await visit('/', { cookies: set })).text)![1]!
    async function look(openapi: string, headers: Record<string, string>) {
      const { body, status } = await here.call<Surveying>('POST', '/ui/openapi/look', {
        key: '',
        body: { openapi },
        headers,
      })
      return [status, body]
    }
    const cookie = cookieText(set)
    expect((await look('', {}))[0]).toBe(401)
    expect((await look('', { cookie }))[0]).toBe(403)
    expect(await look('a: [', { cookie, 'x-csrf-token': token })).toEqual([
      200,
      { problem: { place: '#', message: expect.stringMatching(/^line 1/) } },
    ])
    expect(await look(petsDocument, { cookie, 'x-csrf-token': token })).toMatchObject([
      200,
      { title: 'Pets', operations: expect.arrayContaining([expect.objectContaining({ operationId: 'search' })]) },
    ])
    expect((await visit('/connectors', { cookies: set })).text).toContain('No connector of your own is installed.')
  })

  it('looks into no document for somebody who may not install one', async () => {
    await setUp()
    const viewer = { email: 'grace@example.com', name: 'Grace', role: 'viewer' }
    const { body: invited } = await here.call<PersonLink>('POST', '/v1/users', { body: viewer })
    const password = OWNER.password
    await here.call('POST', '/auth/invitation', { key: '', body: { token: invited.linkToken, password } })
    const sent = { key: '', body: { email: viewer.email, password } }
    const { headers, body: login } = await here.call<LoggedIn>('POST', '/auth/login', sent)
    const answer = await here.call('POST', '/ui/openapi/look', {
      key: '',
      body: { openapi: petsDocument },
      headers: { cookie: headers.get('set-cookie')!.split(';')[0]!, 'x-csrf-token': login.csrfToken },
    })
    expect([answer.status, answer.body]).toEqual([
      403,
      { error: 'this needs the scope connectors:write', code: 'forbidden_scope' },
    ])
  })

  it('has its token in another text each time, of which each is good and none with a letter changed', async () => {
    await setUp()
    const { set } = await logIn()
    const cookie = cookieText(set)
    const shown = async () => /data-csrf="([\w-]+)"/.exec((await visit('/', { cookies: set })).text)![1]!
    const tokens = [await shown(), await shown()]
    expect(tokens[0]).not.toBe(tokens[1])
    const check = async (token: string) =>
      (
        await here.runtime.fetch(
          new Request('http://localhost/ui/manifest/check', {
            method: 'POST',
            headers: { cookie, 'x-csrf-token': token, 'content-type': 'application/json' },
            body: JSON.stringify({ manifest: {} }),
          }),
        )
      ).status
    for (const token of tokens) {
      expect(await check(token)).toBe(200)
      for (const at of [0, 42, 43, 85]) {
        const other = token[at] === 'A' ? 'B' : 'A'
        expect(await check(token.slice(0, at) + other + token.slice(at + 1)), `letter ${at}`).toBe(403)
      }
    }
  })

  it('checks a manifest as publishing would, for who is logged in and holds the token', async () => {
    await setUp()
    const { set } = await logIn()
    const token = /data-csrf="([\w-]+)"/.exec((await visit('/', { cookies: set })).text)![1]!
    async function check(manifest: unknown, headers: Record<string, string>) {
      const { body, status } = await here.call<{ issues: object[] }>('POST', '/ui/manifest/check', {
        key: '',
        body: { manifest },
        headers,
      })
      return [status, body.issues]
    }
    const cookie = cookieText(set)
    expect((await check({}, {}))[0]).toBe(401)
    expect((await check({}, { cookie }))[0]).toBe(403)
    expect(await check({}, { cookie, 'x-csrf-token': token })).toEqual([200, []])
    const wrong = { isolation: 'jail', limits: { vcpus: 99 } }
    expect(await check(wrong, { cookie, 'x-csrf-token': token })).toEqual([
      200,
      [expect.objectContaining({ path: 'isolation' }), expect.objectContaining({ path: 'limits.vcpus' })],
    ])
  })

  it('reads a manifest that is YAML, and says nothing of a text that is none, or stands for too much', async () => {
    await setUp()
    const { set } = await logIn()
    const token = /data-csrf="([\w-]+)"/.exec((await visit('/', { cookies: set })).text)![1]!
    const read = async (text: string, headers: Record<string, string>) => {
      const { body, status } = await here.call('POST', '/ui/manifest/read', { key: '', body: { text }, headers })
      return status === 200 ? body : status
    }
    const own = { cookie: cookieText(set), 'x-csrf-token': token }
    expect(await read('model: demo/echo', { cookie: own.cookie })).toBe(403)
    const text = 'model: demo/echo\nsystemPrompt: |\n  You are *bold*.\ntools: [wait]\n'
    const manifest = { model: 'demo/echo', systemPrompt: 'You are *bold*.\n', tools: ['wait'] }
    expect(await read(text, own)).toEqual({ manifest })
    const doubled = Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`)
    for (const none of ['', 'words', '- one', '{', 'a: b: c', 'a: &x\n  b: *x', ['a0: &a0 [1]', ...doubled].join('\n')])
      expect(await read(none, own), none).toEqual({})
  })
})

describe('a login by form', () => {
  it('gives a new token whatever the browser came with, and no token of anybody else becomes good', async () => {
    await setUp()
    const planted = 'planted-by-somebody-who-waits-for-a-login'
    const first = await logIn({ wb_session: planted })
    expect(first.status).toBe(303)
    expect(first.set.wb_session).toMatch(/^[\w-]{43}$/)
    expect(first.set.wb_session).not.toBe(planted)
    expect(first.all.find(one => one.startsWith('wb_session'))).toMatch(/HttpOnly; SameSite=Lax/)
    expect((await visit('/', { cookies: { wb_session: planted } })).status).toBe(303)
    const second = await logIn({ wb_session: 'x' })
    expect(second.set.wb_session).not.toBe(first.set.wb_session)
  })

  it('is refused without the token of its own form: nobody can be logged in as somebody else', async () => {
    await setUp()
    const form = await visit('/login')
    const fields = { email: OWNER.email, password: OWNER.password }
    const other = csrfIn((await visit('/login')).text)
    for (const csrf of ['', 'guess', other]) {
      const answer = await visit('/login', { cookies: form.set, form: { ...fields, csrf } })
      expect(answer.status).toBe(403)
      expect(answer.set.wb_session).toBeUndefined()
    }
    const bare = await visit('/login', { form: { ...fields, csrf: csrfIn(form.text) } })
    expect(bare.status).toBe(403)
  })

  it('says what is wrong, keeps the address that was typed, and leads only to pages of its own', async () => {
    await setUp()
    const wrong = await logIn({}, { password: 'wrong', email: 'eve@example.com"><b>' })
    expect(wrong.status).toBe(401)
    expect(wrong.text).toContain('value="eve@example.com&quot;&gt;&lt;b&gt;"')
    for (const next of ['//evil.example', 'https://evil.example', '/\\evil', 'runs/../../x', 'javascript:alert(1)']) {
      expect((await logIn({}, { next })).to).toBe('./')
    }
    expect((await logIn({}, { next: 'runs?status=failed' })).to).toBe('./runs?status=failed')
  })

  it('asks for the workspace where the password fits several, and keeps where the person was going', async () => {
    await setUp()
    const tenantId = await here.newTenant('Sales <b>')
    const { rawKey: key } = await here.newKey({}, tenantId)
    const { body: link } = await here.call<PersonLink>('POST', '/v1/users', {
      key,
      body: { ...OWNER, password: undefined },
    })
    const { password } = OWNER
    await here.call('POST', '/auth/invitation', { key: '', body: { token: link.linkToken, password } })

    const choice = await logIn({}, { next: 'runs?status=failed' })
    expect([choice.status, choice.set.wb_session]).toEqual([409, undefined])
    expect(choice.text).toContain('Sales &lt;b&gt;')
    expect(choice.text).toContain('name="next" value="runs?status=failed"')
    expect(choice.text).not.toContain(OWNER.password)
    const offered = [...choice.text.matchAll(/<input name="tenantId" type="radio" value="([^"]+)"/g)].map(
      ([, id]) => id,
    )
    expect(offered.toSorted()).toEqual([tenantId, 'default'].toSorted())
    for (const chosen of [tenantId, 'default']) {
      const form = { csrf: csrfIn(choice.text), email: OWNER.email, password, next: 'runs', tenantId: chosen }
      const done = await visit('/login', { cookies: choice.set, form })
      expect([done.status, done.to]).toEqual([303, './runs'])
      const page = await visit('/', { cookies: done.set })
      expect(page.text).toContain(`data-tenant="${chosen}"`)
    }
    const form = { csrf: csrfIn(choice.text), email: OWNER.email, password, tenantId: 'another' }
    const wrong = await visit('/login', { cookies: choice.set, form })
    expect([wrong.status, wrong.set.wb_session]).toEqual([401, undefined])
    expect(wrong.text).toContain('the e-mail or the password is not right')
  })

  it('ends by its own form only', async () => {
    await setUp()
    const { set: cookies } = await logIn()
    for (const csrf of ['', 'guess']) expect((await visit('/logout', { cookies, form: { csrf } })).status).toBe(403)
    const { text, status } = await visit('/', { cookies })
    expect(status).toBe(200)
    expect(await visit('/logout', { cookies, form: { csrf: csrfIn(text) } })).toMatchObject({
      status: 303,
      to: './login',
    })
    expect((await visit('/', { cookies })).status).toBe(303)
  })
})

it('the page of a run that was set aside says what happened and what to do, and its list that it is', async () => {
  await setUp()
  const { set: cookies } = await logIn()
  const id = '00000000-0000-7000-8000-000000000001'
  await here.db.write([
    {
      sql: `insert into runs (id, tenant_id, agent_name, agent_id, version_id, status, parked, created_ms, updated_ms, trigger_kind, isolation)
        values (?, 'default', 'worker', 'a', 'v', 'waiting', 'poisoned', 1, 1, 'api', 'shared')`,
      args: [id],
    },
    { sql: "insert into run_data (run_id, input) values (?, '{}')", args: [id] },
  ])
  const page = await visit(`/runs/${id}`, { cookies })
  expect([page.status, page.text]).toEqual([200, expect.stringContaining(`POST /v1/runs/${id}/signals/resume`)])
  expect(page.text).toContain('Set aside')
  expect(page.text).toMatch(/<button[^>]*>Resume<\/button>/)
  expect(page.text).not.toContain('sleeps until')
  expect((await visit('/runs', { cookies })).text).toContain('<small>poisoned</small>')
})

describe('what a browser loads', () => {
  it('is less than 80 kB of modules in all', () => {
    const modules = Object.entries(dashboardFiles).filter(([name]) => name.endsWith('.js'))
    const size = modules.reduce((sum, [, text]) => sum + gzipSync(text).length, 0)
    process.stderr.write(`dashboard: ${modules.length} modules, ${size} bytes gzipped\n`)
    expect(size).toBeLessThan(80_000)
  })

  it('is told apart by its content, so that a page that was seen costs nothing again', async () => {
    const first = await here.runtime.fetch(new Request('http://localhost/ui/files/dashboard.js'))
    const etag = first.headers.get('etag')!
    const headers = { 'if-none-match': etag }
    expect((await here.runtime.fetch(new Request('http://localhost/ui/files/dashboard.js', { headers }))).status).toBe(
      304,
    )
    const packed = await here.runtime.fetch(
      new Request('http://localhost/ui/files/dashboard.js', { headers: { 'accept-encoding': 'gzip' } }),
    )
    // A host that compresses by itself, as this one stands for, gets the text.
    expect(packed.headers.get('content-encoding')).toBe(null)
    expect((await here.runtime.fetch(new Request('http://localhost/ui/files/constructor'))).status).toBe(404)
    expect((await here.runtime.fetch(new Request('http://localhost/ui/live'))).status).toBe(401)
  })
})

describe('a page that looks again', () => {
  const look = (path: string, headers: Record<string, string>) =>
    here.runtime.fetch(new Request(`http://localhost${path}`, { headers: { 'x-look': 'now', ...headers } }))

  it('gets nothing while nothing is another, else what changed without the frame and its token', async () => {
    await setUp()
    const { set } = await logIn()
    const cookie = cookieText(set)
    for (const path of ['/', '/runs', '/approvals', '/agents', '/sessions', '/schedules', '/connectors', '/settings']) {
      const { text } = await visit(path, { cookies: set })
      const [, etag = ''] = /data-etag="([^"]+)"/.exec(text)!
      const same = await look(path, { cookie, 'if-none-match': etag.replaceAll('&quot;', '"') })
      expect([same.status, await same.text()], path).toEqual([304, ''])
      const other = await look(path, { cookie, 'if-none-match': '"old"' })
      const drawn = await other.text()
      expect(other.status, path).toBe(200)
      expect(drawn).toContain('<nav id="menu"')
      expect(drawn).not.toMatch(/csrf|<html|<header/)
      expect(text).toContain(drawn.slice(drawn.indexOf('</nav>') + 6))
    }
  })

  it('is refused without a login, and is told where there is nothing any more', async () => {
    await setUp()
    expect((await look('/', {})).status).toBe(401)
    const { set } = await logIn()
    const missing = await look('/runs/01900000-0000-7000-8000-000000000000', { cookie: cookieText(set) })
    expect([missing.status, await missing.text()]).toEqual([404, ''])
  })
})

describe('at 100,000 runs', () => {
  const RUNS = 100_000

  async function fill(db: Db): Promise<void> {
    // Nine of ten are turns of sessions, one in a hundred has failed, and ten wait.
    await db.execute({
      sql: `insert into runs (id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, trigger_kind, isolation)
        with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1)
        select printf('%08x-0000-7000-8000-%012x', i, i), 'default', 'agent-' || (i % 20), 'a', 'v',
          case when i % 10000 = 7 then 'waiting' when i % 100 = 3 then 'failed' else 'succeeded' end,
          ?2 + i, ?2 + i, case when i <= 10000 then 'api' else 'session' end, 'shared' from n`,
      args: [RUNS, here.clock.now().getTime() - RUNS],
    })
  }

  it('every list and figure of the dashboard is read from an index, and quickly', async () => {
    const db = await openDb(':memory:')
    const asked: { sql: string; args: never[] }[] = []
    const watched: Db = {
      ...db,
      execute(statement) {
        if (typeof statement !== 'string' && /\bfrom runs\b/.test(statement.sql)) asked.push(statement as never)
        return db.execute(statement)
      },
    }
    await here.close()
    here = await fixture({ db: watched })
    await fill(db)
    const filters = [
      '',
      '?agentName=agent-3',
      '?status=waiting',
      '?status=failed',
      '?agentName=agent-7&status=waiting',
      '?agentName=nobody',
      '?trigger=schedule',
      '?trigger=api&status=failed',
      '?errorCode=timeout',
      '?subRuns=folded&fields=title&count=true',
      '?sort=costUsd',
      '?sort=durationMs&status=failed&count=true',
    ]
    for (const filter of filters) {
      const started = performance.now()
      const { status } = await here.call('GET', `/v1/runs${filter}`)
      expect([filter, status]).toEqual([filter, 200])
      expectWithin(performance.now() - started, 100, filter)
    }
    const figures = [{ sql: MARKS_SQL, args: ['["default"]'] }]
    expect(asked.length).toBeGreaterThanOrEqual(filters.length)
    for (const { sql, args } of [...asked, ...figures]) {
      const { rows } = await db.execute({ sql: `explain query plan ${sql}`, args: args as never })
      const plan = rows.map(row => String(row.detail))
      const ofRuns = plan.filter(line => /\bruns\b/.test(line))
      expect(ofRuns.length, sql).toBeGreaterThan(0)
      for (const line of ofRuns)
        expect(line, `${sql}\n${plan.join('\n')}`).toMatch(/^SEARCH runs USING (?:COVERING )?INDEX/)
      if (/order by created_ms/.test(sql) && !sql.includes('json_each')) {
        expect(plan.join('\n'), sql).not.toMatch(/TEMP B-TREE/)
      }
    }
    await here.close()
    db.close()
    here = await fixture()
  })

  it('so is every other list', async () => {
    const db = await openDb(':memory:')
    const asked: { sql: string; args: never[] }[] = []
    const watched: Db = {
      ...db,
      execute(statement) {
        if (typeof statement !== 'string' && /^select/i.test(statement.sql)) asked.push(statement as never)
        return db.execute(statement)
      },
    }
    await here.close()
    here = await fixture({ db: watched })
    await here.call('POST', '/v1/agents', { body: { name: 'a' } })
    await here.call('POST', '/v1/agents', { body: { name: 'b' } })
    const lists = {
      approvals: '/v1/approvals',
      sessions: '/v1/sessions',
      schedules: '/v1/schedules',
      agents: '/v1/agents',
      users: '/v1/users',
      webhooks: '/v1/webhooks',
      connectors: '/v1/connectors',
      api_keys: '/v1/api-keys',
      nodes: '/v1/nodes',
      mcp_grants: '/v1/mcp-servers/grants',
    }
    for (const [table, path] of Object.entries(lists)) {
      asked.length = 0
      expect((await here.call('GET', `${path}?limit=1`)).status, path).toBe(200)
      const own = asked.filter(({ sql }) => new RegExp(`from ${table}\\b`).test(sql) && /limit/.test(sql))
      expect(own.length, path).toBeGreaterThan(0)
      for (const { sql, args } of own) {
        const { rows } = await db.execute({ sql: `explain query plan ${sql}`, args: args as never })
        const plan = rows.map(row => String(row.detail)).join('\n')
        expect(plan, sql).toMatch(new RegExp(`SEARCH ${table} USING`))
        expect(plan, sql).not.toMatch(/TEMP B-TREE/)
      }
    }
    await here.close()
    db.close()
    here = await fixture()
  })
})
