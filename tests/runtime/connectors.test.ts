import { readFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { catalogue } from '../../runtime/connectors/catalogue.ts'
import { get, ok, post, postForm } from '../../runtime/connectors/testing/fixture.ts'
import { fixtures } from '../../runtime/connectors/testing/fixtures.ts'
import type { AuditEntry } from '../../shared/wire/runtime/audit.ts'
import type { ApiKeyCreated, Tenant } from '../../shared/wire/runtime/auth.ts'
import { connectorIds } from '../../shared/wire/runtime/catalog.ts'
import {
  type CatalogEntry,
  type Connector,
  type ConnectorDetail,
  type ConnectorInstalled,
  type ConnectorTest,
  catalogEntry,
  connectorDetail,
  connectorInstalled,
  connectorTest,
  type ExecuteResult,
  executeResult,
} from '../../shared/wire/runtime/connector.ts'
import type { ErrorBody } from '../../shared/wire/runtime/error.ts'
import { connectorFixture } from './connector-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function fixture(options: Parameters<typeof connectorFixture>[0] = {}) {
  const made = await connectorFixture(options)
  open.push(made)
  return made
}

type Room = Awaited<ReturnType<typeof fixture>>

const { headers, config } = fixtures.slack
const secret = String(config.botToken)
const users = get('/api/users.list', { limit: '100' })
const said = { ok: true, members: [{ id: 'U1' }] }

/** The body of a refusal. */
async function refused({ call }: Room, status: number, method: string, path: string, body?: unknown, key = {}) {
  const answer = await call(method, path, body, key)
  const found = (await answer.json()) as ErrorBody
  expect([answer.status, found.error]).toEqual([status, expect.any(String)])
  return found
}

describe('the catalogue', () => {
  it('names every connector with its keys, its actions and the schema of their arguments', async () => {
    const { json } = await fixture()
    const found = await json<CatalogEntry[]>(200, 'GET', '/v1/connectors/catalog')
    expect(found.map(one => catalogEntry.parse(one))).toEqual(found)
    expect(found.map(({ connectorId }) => connectorId)).toEqual(connectorIds)
    const telegram = found.find(({ connectorId }) => connectorId === 'telegram')
    expect(telegram).toMatchObject({
      name: 'Telegram',
      auth: 'token',
      configKeys: ['botToken'],
      actions: [
        { name: 'send_message', readOnly: false, arguments: { required: ['chatId', 'text'] } },
        { name: 'get_updates', readOnly: true, arguments: { properties: { limit: { default: 100 } } } },
      ],
    })
  })
})

describe.each(connectorIds)('%s', id => {
  it('is installed, tested, called by each of its actions, shown without its secrets, and uninstalled', async () => {
    const { json, call, vendor, install, lines, db } = await fixture()
    const recorded = fixtures[id]
    const installed = connectorInstalled.parse(await install(id, { ...recorded.config }))
    expect(installed).toMatchObject({ connectorId: id, status: 'installed', ready: true, missing: [], warnings: [] })

    vendor.script(recorded.headers, recorded.probe.exchanges)
    const tested = connectorTest.parse(await json<ConnectorTest>(200, 'POST', `/v1/connectors/${id}/test`))
    expect(tested).toMatchObject({ success: true, ...(recorded.probe.account && { account: recorded.probe.account }) })
    expect(vendor.problems()).toEqual([])

    for (const [action, given] of Object.entries(recorded.actions)) {
      vendor.script(recorded.headers, given.exchanges)
      const path = `/v1/connectors/${id}/execute?action=${action}`
      const done = executeResult.parse(await json<ExecuteResult>(200, 'POST', path, given.arguments))
      expect(vendor.problems()).toEqual([])
      expect(done).toEqual({ result: given.result, connector: id, action, data: given.result })

      vendor.script(recorded.headers, [[given.exchanges[0][0], recorded.fault]])
      const failed = await call('POST', path, given.arguments)
      expect([failed.status, await failed.json()]).toEqual([
        502,
        {
          code: 'upstream_failed',
          connector: id,
          action,
          upstreamStatus: recorded.fault.status ?? 200,
          upstreamMessage: recorded.fault.message,
          error: `${id} ${action}: ${recorded.fault.message}`,
        },
      ])
    }

    const shown = connectorDetail.parse(await json<ConnectorDetail>(200, 'GET', `/v1/connectors/${installed.id}`))
    expect(shown).toMatchObject({ connectorId: id, ready: true, baseUrl: vendor.origin, lastTest: { success: true } })
    const listed = JSON.stringify(await json<Connector[]>(200, 'GET', '/v1/connectors'))
    const secrets = catalogue[id].keys.flatMap(({ name, secret }) => (secret ? [name] : []))
    for (const [name, value] of Object.entries(recorded.config)) {
      expect(shown.config[name]).toBe(secrets.includes(name) ? '***' : value)
      if (!secrets.includes(name)) continue
      expect(listed).not.toContain(value)
      expect(lines.join('\n')).not.toContain(value)
      expect(JSON.stringify((await db.execute('select * from connectors')).rows)).not.toContain(value)
    }
    expect((await call('DELETE', `/v1/connectors/${id}`)).status).toBe(204)
    expect((await call('DELETE', `/v1/connectors/${id}`)).status).toBe(404)
  })
})

describe('an install', () => {
  it('keeps its id when its credentials are replaced, and the new ones are used', async () => {
    const made = await fixture()
    const { json, vendor, install } = made
    const first = await install('slack', { botToken: 'xoxb-old-old-old' })
    const second = await install('slack', { ...config, displayName: undefined })
    expect(second.id).toBe(first.id)
    expect((await json<Connector[]>(200, 'GET', '/v1/connectors')).map(({ id }) => id)).toEqual([first.id])
    vendor.script(headers, [[users, ok(said)]])
    await json(200, 'GET', '/v1/connectors/slack/execute?action=list_users')
    expect(vendor.problems()).toEqual([])
  })

  it('of equal calls with one Idempotency-Key is one, and the answer comes again', async () => {
    const { call, vendor } = await fixture()
    const body = { connectorId: 'slack', config: { ...config, baseUrl: vendor.origin, nonsense: 1 } }
    const send = () => call('POST', '/v1/connectors/install', body, { 'idempotency-key': 'one' })
    const [first, second] = [await send(), await send()]
    const made = (await first.json()) as ConnectorInstalled
    expect(made.warnings).toEqual(['config.nonsense is not a key of slack and was not stored'])
    expect([second.headers.get('idempotency-replayed'), await second.json()]).toEqual(['true', made])
  })

  it('without its credentials is kept and not ready: its test says so, and a call is a conflict that says how to go on', async () => {
    const made = await fixture()
    const { json, install, vendor } = made
    expect(await install('slack', {})).toMatchObject({ ready: false, missing: ['botToken'] })
    vendor.script({}, [])
    expect(await json<ConnectorTest>(200, 'POST', '/v1/connectors/slack/test')).toMatchObject({
      success: false,
      message: expect.stringContaining('slack is installed without botToken'),
    })
    const found = await refused(made, 409, 'GET', '/v1/connectors/slack/execute?action=list_users')
    expect(found).toMatchObject({ code: 'connector_not_ready', missing: ['botToken'] })
    expect(found.error).toContain('POST /v1/connectors/install')
    expect(vendor.count()).toBe(0)
  })

  it.each([
    [{ connectorId: 'skype', config: {} }, 404, 'connector not found: skype; the catalogue has gmail, google-calendar'],
    [{ connectorId: 'slack' }, 400, 'config is required'],
    [
      { connectorId: 'slack', config: { botToken: 7.5, baseUrl: 'ftp://a' } },
      400,
      'config.baseUrl: expected an http or https',
    ],
    [{ connectorId: 'slack', config: { botToken: { x: 1 } } }, 400, 'config.botToken: expected a string'],
    [{ connectorId: 'slack', config: {}, color: 'red' }, 400, 'unknown key: color'],
    [
      { connectorId: 'slack', config: { baseUrl: 'https://a.example/?x=1' } },
      400,
      'expected an address without ? and #',
    ],
  ])('is refused when it says something that cannot be: %j', async (body, status, message) => {
    expect((await refused(await fixture(), status, 'POST', '/v1/connectors/install', body)).error).toContain(message)
  })

  it.each([
    'http://127.0.0.1:9',
    'http://169.254.169.254/latest',
    'http://10.1.2.3',
    'http://[::1]:8080',
    'http://localhost:1',
    'http://[::ffff:169.254.169.254]',
    'http://2130706433',
  ])('does not lead to %s', async baseUrl => {
    const made = await fixture()
    const body = { connectorId: 'slack', config: { botToken: 'xoxb-1234', baseUrl } }
    expect((await refused(made, 400, 'POST', '/v1/connectors/install', body)).details).toMatchObject([
      { path: 'config.baseUrl', message: expect.stringContaining('PLATFORM_OUTBOUND_ALLOW') },
    ])
    const own = { connectorId: 'salesforce', config: { accessToken: 'a', instanceUrl: baseUrl.replace('/latest', '') } }
    await refused(made, 400, 'POST', '/v1/connectors/install', own)
  })

  it('that was let in before the rule was narrowed is refused at the call', async () => {
    const made = await fixture()
    await made.install('slack', config)
    await made.db.execute({ sql: 'update connectors set base_url = ?', args: [JSON.stringify('http://127.0.0.1:9')] })
    const found = await refused(made, 502, 'GET', '/v1/connectors/slack/execute?action=list_users')
    expect(found.upstreamMessage).toContain('127.0.0.1 is a loopback address')
  })

  it('does not follow a vendor to another origin, nor give it the credentials', async () => {
    const made = await fixture()
    const { vendor, install } = made
    const { vendor: other } = await fixture()
    await install('slack', config)
    vendor.script(headers, [[users, { status: 302, headers: { location: `${other.origin}/api/users.list` } }]])
    const found = await refused(made, 502, 'GET', '/v1/connectors/slack/execute?action=list_users')
    expect(found.upstreamMessage).toContain('redirect to another origin')
    expect(other.count()).toBe(0)
  })

  it('is expired once its credentials are refused, until they are replaced or taken again', async () => {
    const { json, call, vendor, install } = await fixture()
    await install('slack', config)
    const status = async () => (await json<Connector>(200, 'GET', '/v1/connectors/slack')).status
    vendor.script(headers, [[users, fixtures.slack.refused]])
    expect((await call('GET', '/v1/connectors/slack/execute?action=list_users')).status).toBe(502)
    expect(await status()).toBe('expired')
    await install('slack', config)
    expect(await status()).toBe('installed')
    vendor.script(headers, [[users, fixtures.slack.refused]])
    await call('GET', '/v1/connectors/slack/execute?action=list_users')
    vendor.script(headers, fixtures.slack.probe.exchanges)
    expect(await json(200, 'POST', '/v1/connectors/slack/test')).toMatchObject({ success: true })
    expect(await status()).toBe('installed')
  })

  it('leaves its secrets in no answer, no log line and no file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-connectors-'))
    const made = await fixture({ url: join(folder, 'db') })
    const { json, call, vendor, install, lines } = made
    await install('slack', config)
    const seen: string[] = []
    vendor.script(headers, [[users, { status: 400, body: { error: `bad token ${secret}` } }]])
    for (const [method, path] of [
      ['GET', '/v1/connectors'],
      ['GET', '/v1/connectors/slack'],
      ['GET', '/v1/connectors/slack/execute?action=list_users'],
      ['POST', '/v1/connectors/slack/test'],
      ['GET', '/v1/audit-log'],
    ] as const) {
      seen.push(await (await call(method, path)).text())
    }
    expect(seen.join('\n')).toContain('bad token ***')
    await json(204, 'DELETE', '/v1/connectors/slack')
    await made.db.execute('pragma wal_checkpoint(truncate)')
    const file = readFileSync(join(folder, 'db')).toString('latin1')
    for (const text of [...seen, ...lines, file]) expect(text).not.toContain(secret)
  })

  it('belongs to its tenant: another one sees nothing of it', async () => {
    const made = await fixture()
    const { json, install, runtime } = made
    const { id } = await install('slack', config)
    const other = await json<Tenant>(201, 'POST', '/v1/tenants', { name: 'other' })
    const { rawKey } = await json<ApiKeyCreated>(201, 'POST', `/v1/tenants/${other.id}/api-keys`, { name: 'k' })
    const ask = async (method: string, path: string) => {
      const init = { method, headers: { authorization: `Bearer ${rawKey}` } }
      const answer = await runtime.fetch(new Request(`http://localhost${path}`, init))
      return [answer.status, await answer.json()]
    }
    expect(await ask('GET', '/v1/connectors')).toEqual([200, []])
    expect(await ask('GET', '/v1/connectors/slack')).toMatchObject([404, { code: 'not_found' }])
    for (const [method, path] of [
      ['GET', `/v1/connectors/${id}`],
      ['DELETE', `/v1/connectors/${id}`],
      ['POST', `/v1/connectors/${id}/test`],
      ['POST', `/v1/connectors/${id}/execute?action=list_users`],
    ] as const) {
      expect(await ask(method, path)).toMatchObject([403, { code: 'forbidden_tenant' }])
    }
  })
})

describe('a call of an action', () => {
  it('takes the connector by either id, arguments from query and body, and reads by GET', async () => {
    const { json, vendor, install } = await fixture()
    const { id } = await install('slack', config)
    const list = get('/api/conversations.list', { limit: '7', cursor: 'c' })
    for (const at of ['slack', id]) {
      vendor.script(headers, [
        [list, ok({ ok: true })],
        [list, ok({ ok: true })],
      ])
      await json(200, 'GET', `/v1/connectors/${at}/execute?action=list_channels&limit=7&cursor=c&undefined=null`)
      await json(200, 'POST', `/v1/connectors/${at}/execute?action=list_channels&limit=3&cursor=c`, { limit: '7' })
      expect(vendor.problems()).toEqual([])
    }
  })

  it.each([
    [
      'GET',
      '/v1/connectors/slack/execute',
      undefined,
      400,
      'action: expected one of the actions of slack: list_channels, list_users',
    ],
    ['GET', '/v1/connectors/slack/execute?action=null', undefined, 400, 'action: expected one of the actions of slack'],
    ['POST', '/v1/connectors/slack/execute?action=shout', {}, 400, 'slack: list_channels, post_message, list_users'],
    ['POST', '/v1/connectors/slack/execute?action=constructor', {}, 400, 'expected one of the actions'],
    ['GET', '/v1/connectors/slack/execute?action=post_message&channel=a&text=b', undefined, 400, 'it takes a POST'],
    ['POST', '/v1/connectors/slack/execute?action=post_message', {}, 400, 'channel is required; text is required'],
    ['POST', '/v1/connectors/slack/execute?action=list_users', { limit: 0 }, 400, 'limit: expected'],
    ['POST', '/v1/connectors/slack/execute?action=list_users', [1], 400, 'body: expected an object'],
    ['POST', '/v1/connectors/github/execute?action=list_repos', {}, 404, 'installed connector not found: github'],
    ['GET', '/v1/connectors/nothing', undefined, 404, 'installed connector not found: nothing'],
    ['POST', '/v1/connectors/nothing/test', {}, 404, 'installed connector not found: nothing'],
  ])('is refused with what is wrong: %s %s %j', async (method, path, body, status, message) => {
    const made = await fixture()
    await made.install('slack', config)
    made.vendor.script(headers, [])
    expect((await refused(made, status, method, path, body)).error).toContain(message)
    expect(made.vendor.count()).toBe(0)
  })

  it('names each argument that does not fit', async () => {
    const made = await fixture()
    await made.install('github', fixtures.github.config)
    const path = '/v1/connectors/github/execute?action=get_pr'
    expect((await refused(made, 400, 'POST', path, { owner: 'a', number: 'x' })).details).toEqual([
      { path: 'repo', message: 'Required' },
      { path: 'number', message: 'expected an integer of at least 1' },
    ])
    const climbing = { owner: '..', repo: 'x', number: 1 }
    expect((await refused(made, 400, 'POST', path, climbing)).error).toContain('cannot be part of a path')
  })

  it('is made once for each Idempotency-Key, and only what was refused may be tried again with it', async () => {
    const made = await fixture()
    const { call, vendor, install } = made
    await install('slack', config)
    const message = { channel: 'C1', text: 'hi' }
    const sent = { ...post('/api/chat.postMessage', message), headers: { 'idempotency-key': 'k1' } }
    const send = () =>
      call('POST', '/v1/connectors/slack/execute?action=post_message', message, { 'idempotency-key': 'k1' })
    // The vendor said no, so nothing was done.
    vendor.script(headers, [[sent, fixtures.slack.fault]])
    expect((await send()).status).toBe(502)
    vendor.script(headers, [[sent, ok({ ok: true, ts: '1' })]])
    const first = await send()
    const second = await send()
    expect([first.status, second.status, second.headers.get('idempotency-replayed')]).toEqual([200, 200, 'true'])
    expect(await second.json()).toEqual(await first.json())
    expect([vendor.count(), vendor.problems()]).toEqual([1, []])
    // The address says which action it is, and may say its arguments.
    for (const other of ['action=list_channels', 'action=post_message&thread_ts=1']) {
      const answer = await call('POST', `/v1/connectors/slack/execute?${other}`, message, { 'idempotency-key': 'k1' })
      expect([other, answer.status]).toEqual([other, 409])
    }
  })

  it.each([
    { raw: '{"ok": tr' },
    // What Slack says of these is that some of it may have been done before.
    ok({ ok: false, error: 'internal_error' }),
    { status: 503, body: { ok: false, error: 'service_unavailable' } },
  ])('that may have happened is not made again under its key: %j', async answer => {
    const made = await fixture()
    const { call, vendor, install } = made
    await install('slack', config)
    const message = { channel: 'C1', text: 'hi' }
    const sent = { ...post('/api/chat.postMessage', message), headers: { 'idempotency-key': 'k2' } }
    const key = { 'idempotency-key': 'k2' }
    const send = () => call('POST', '/v1/connectors/slack/execute?action=post_message', message, key)
    vendor.script(headers, [[sent, answer]])
    expect(((await (await send()).json()) as ErrorBody).error).toContain('whether it was done is not known')
    const again = await send()
    expect([again.status, ((await again.json()) as ErrorBody).error]).toEqual([
      ...[502, expect.stringContaining('may have reached the vendor')],
    ])
    expect(vendor.count()).toBe(1)
  })

  it('stands in the audit log, as do installing and uninstalling', async () => {
    const { json, call, vendor, install } = await fixture()
    await install('slack', config)
    vendor.script(headers, [
      [users, ok(said)],
      [post('/api/chat.postMessage', { channel: 'C1', text: 'hi' }), ok({ ok: true })],
    ])
    await call('GET', '/v1/connectors/slack/execute?action=list_users')
    await call('POST', '/v1/connectors/slack/execute?action=post_message', { channel: 'C1', text: 'hi' })
    await call('POST', '/v1/connectors/slack/execute?action=nothing', {})
    await call('DELETE', '/v1/connectors/slack')
    const entries = await json<AuditEntry[]>(200, 'GET', '/v1/audit-log')
    expect(entries.map(({ action, target, outcome }) => [action, target, outcome])).toEqual([
      ['uninstallConnector', '/v1/connectors/slack', 'done'],
      ['executeConnector', '/v1/connectors/slack/execute?action=post_message', 'done'],
      ['executeConnectorRead', '/v1/connectors/slack/execute?action=list_users', 'done'],
      ['installConnector', '/v1/connectors/install', 'done'],
    ])
  })

  it('needs its own scope', async () => {
    const { json, runtime, install } = await fixture()
    await install('slack', config)
    const { rawKey } = await json<ApiKeyCreated>(201, 'POST', '/v1/api-keys', {
      name: 'k',
      scopes: ['connectors:write'],
    })
    const init = { headers: { authorization: `Bearer ${rawKey}` } }
    const path = 'http://localhost/v1/connectors/slack/execute?action=list_users'
    expect((await runtime.fetch(new Request(path, init))).status).toBe(403)
  })

  it('sends SMS from what the call names, or else from what the install has', async () => {
    const made = await fixture()
    const { json, vendor, install } = made
    const { phoneNumber: _, ...account } = fixtures.twilio.config
    const at = `/2010-04-01/Accounts/${String(account.accountSid)}`
    const path = '/v1/connectors/twilio/execute?action=send_sms'
    await install('twilio', { ...account, messagingServiceSid: 'MG1' })
    const form = { To: '+1', Body: 'hi' }
    vendor.script(fixtures.twilio.headers, [
      [postForm(`${at}/Messages.json`, { ...form, MessagingServiceSid: 'MG1' }), ok({ sid: 'SM1' })],
      [postForm(`${at}/Messages.json`, { ...form, From: '+2' }), ok({ sid: 'SM2' })],
    ])
    await json(200, 'POST', path, { to: '+1', body: 'hi' })
    await json(200, 'POST', path, { to: '+1', body: 'hi', from: '+2' })
    expect(vendor.problems()).toEqual([])
    await install('twilio', account)
    expect((await refused(made, 400, 'POST', path, { to: '+1', body: 'hi' })).error).toContain('from: needed')
  })
})

it('does not install what it could not seal', async () => {
  const made = await fixture({ masterKey: undefined })
  const body = { connectorId: 'slack', config: { botToken: 'xoxb-1234' } }
  expect((await refused(made, 400, 'POST', '/v1/connectors/install', body)).error).toContain('PLATFORM_MASTER_KEY')
})
