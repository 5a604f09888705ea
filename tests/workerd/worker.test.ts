import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createRuntime } from '../../runtime/runtime.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Fire, Schedule } from '../../shared/wire/runtime/schedule.ts'
import { startWorker, type Worker } from '../../wrangler-local/workers.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream, stream } from '../upstream/scripted.ts'

const KEY = `wb_live_${'w'.repeat(43)}`
const MASTER = new Uint8Array(32).fill(107)
const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const here = await sqldAvailable()

/** What one host has and the others do not: events instead of a process that lives. */
describe.runIf(here)('in workerd', () => {
  let sqld: Sqld
  let routerSqld: Sqld
  let upstream: ScriptedUpstream
  let workers: Worker[]
  beforeAll(async () => {
    // Both services have a table of the name `budgets`.
    ;[sqld, routerSqld] = await Promise.all([startSqld(), startSqld()])
    upstream = await scriptedUpstream()
    workers = []
  })
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.close()
  })
  afterAll(async () => {
    await upstream?.close()
    await sqld?.stop()
    await routerSqld?.stop()
  })

  async function worker(name: 'runtime' | 'router', more: Record<string, string> = {}): Promise<Worker> {
    const vars: Record<string, string> =
      name === 'runtime'
        ? {
            PLATFORM_DATABASE_URL: sqld.primaryUrl,
            PLATFORM_BOOTSTRAP_KEY: KEY,
            PLATFORM_MASTER_KEY: btoa('k'.repeat(32)),
          }
        : { ROUTER_DB: routerSqld.primaryUrl, ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_INSECURE: '1' }
    const level = { PLATFORM_LOG_LEVEL: 'error', RUST_LOG: 'off' }
    const started = await startWorker(name, { vars: { ...level, ...vars, ...more } })
    workers.push(started)
    return started
  }

  async function json<T>(on: Worker, method: string, path: string, body?: object): Promise<T> {
    const sent = await fetch(new URL(path, on.url), { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await sent.text()
    expect(sent.status, `${method} ${path}: ${text}`).toBeLessThan(300)
    return JSON.parse(text) as T
  }

  it('a run goes on after the answer to who started it, without anybody looking', async () => {
    const on = await worker('runtime')
    await json(on, 'POST', '/v1/agents', { name: 'left', manifest: { model: 'demo/echo', tools: ['wait'] } })
    const body = { agentName: 'left', input: { prompt: '/call*2 wait {"seconds":0}' } }
    const { id } = await json<Run>(on, 'POST', '/v1/runs', body)
    // Asked of the store, so that no request of the test is what moves it.
    const db = await openDb(sqld.primaryUrl)
    await expect
      .poll(async () => (await db.execute({ sql: 'select status from runs where id = ?', args: [id] })).rows[0]?.status)
      .toBe('succeeded')
    db.close()
  })

  it('an event stream has its heartbeat as often as the setting says', async () => {
    const on = await worker('runtime', { PLATFORM_SSE_HEARTBEAT: '1s' })
    await json(on, 'POST', '/v1/agents', { name: 'quiet', manifest: { model: 'demo/echo', tools: ['wait_signal'] } })
    const body = { agentName: 'quiet', input: { prompt: '/call wait_signal {"name":"go"}' } }
    const { id } = await json<Run>(on, 'POST', '/v1/runs', body)
    const stream = await fetch(new URL(`/v1/runs/${id}/events`, on.url), { headers })
    let text = ''
    const began = performance.now()
    for await (const piece of stream.body!.pipeThrough(new TextDecoderStream())) {
      text += piece
      if (/^:/m.test(text)) break
    }
    // Unset it is 15 s.
    expect(performance.now() - began).toBeLessThan(10_000)
  })

  it.each(['legacy', { pin: '2026-07-28' }] as const)('MCP clients are answered: %o', async mode => {
    const on = await worker('runtime')
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', on.url), { requestInit: { headers } }))
    expect((await client.callTool({ name: 'list_agents', arguments: {} })).isError).toBeFalsy()
    await client.close()
  })

  it('the scheduled handler takes up what another event left, and fires schedules that are due', async () => {
    const db = await openDb(sqld.primaryUrl)
    const other = createRuntime({ db, bootstrapKey: KEY, masterKey: MASTER, timers: false })
    await other.ready()
    const ask = async <T>(path: string, body: object) => {
      const request = new Request(`http://local${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      const sent = await other.fetch(request)
      const text = await sent.text()
      expect(sent.status, text).toBe(201)
      return JSON.parse(text) as T
    }
    await ask('/v1/agents', { name: 'taken', manifest: { model: 'demo/echo', tools: ['wait'] } })
    const run = await ask<Run>('/v1/runs', { agentName: 'taken', input: { prompt: '/call wait {"seconds":1}' } })
    const plan = { agentName: 'taken', cronExpr: '0 3 * * *', config: { input: { prompt: 'hello' } } }
    const schedule = await ask<Schedule>('/v1/schedules', plan)
    await other.close(0)
    const past = Date.now() - 1000
    await db.write([
      { sql: 'update runs set due_ms = ? where id = ?', args: [past, run.id] },
      { sql: 'update schedules set due_ms = ? where id = ?', args: [Math.floor(past / 60_000) * 60_000, schedule.id] },
    ])
    db.close()

    const on = await worker('runtime')
    await on.scheduled()
    await expect.poll(async () => (await json<Run>(on, 'GET', `/v1/runs/${run.id}`)).status).toBe('succeeded')
    const fires = await json<Fire[]>(on, 'GET', `/v1/schedules/${schedule.id}/fires`)
    expect(fires.map(({ outcome }) => outcome)).toEqual(['started'])
    const fired = await json<Run[]>(on, 'GET', `/v1/runs?scheduleId=${schedule.id}`)
    await expect.poll(async () => (await json<Run>(on, 'GET', `/v1/runs/${fired[0]?.id}`)).status).toBe('succeeded')
  })

  it('the router keeps the receipt of every call, plain or streamed, however many there are at once', async () => {
    upstream.always((response, seen, request) => {
      const streamed = String(seen.body).includes('"stream":true')
      const script = streamed
        ? stream(messagesFrames(['Hel', 'lo.']), { 'content-type': 'text/event-stream' })
        : answer(200, JSON.stringify(messagesAnswer()))
      return script(response, seen, request)
    })
    const on = await worker('router')
    const calls = Array.from({ length: 30 }, async (_, number) => {
      const body = { model: 'claude-haiku-4-5', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
      const sent = await fetch(new URL('/v1/messages', on.url), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': 'k' },
        body: JSON.stringify(number % 3 === 0 ? { ...body, stream: true } : body),
      })
      return [sent.status, (await sent.text()).includes(number % 3 === 0 ? 'message_stop' : 'Hello.')]
    })
    expect(new Set((await Promise.all(calls)).map(String))).toEqual(new Set(['200,true']))
    const db = await openDb(routerSqld.primaryUrl)
    await expect
      .poll(async () => Number((await db.execute('select count(*) from traces')).rows[0]?.[0]), { timeout: 10_000 })
      .toBe(30)
    db.close()
  })

  it('the router refuses a page of another site', async () => {
    const on = await worker('router')
    upstream.seen.length = 0
    const sent = await fetch(new URL('/v1/messages', on.url), {
      method: 'POST',
      body: '{"model":"m"}',
      headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
    })
    expect([sent.status, sent.headers.get('x-should-retry')]).toEqual([403, 'false'])
    expect(await sent.text()).toContain('ROUTER_ALLOWED_ORIGINS')
    expect(upstream.seen).toHaveLength(0)
  })

  it.each([
    ['runtime', { PLATFORM_DATABASE_URL: './data/waybill.db' }, 'PLATFORM_DATABASE_URL: this host has no files'],
    ['runtime', { PLATFORM_MASTER_KEY_FILE: '/etc/key' }, 'PLATFORM_MASTER_KEY_FILE: this host has no files'],
    ['runtime', { PLATFORM_TUNNEL_BIND: '0.0.0.0:8081' }, 'PLATFORM_TUNNEL_BIND: nodes cannot dial in to this host'],
    ['runtime', { PLATFORM_PEER_URL: 'http://a' }, 'PLATFORM_PEER_URL: this host asks no other control planes'],
    [
      'runtime',
      { PLATFORM_DATABASE_REPLICA_URL: 'http://a' },
      'PLATFORM_DATABASE_REPLICA_URL: this host does not look',
    ],
    ['runtime', { PLATFORM_OTLP_ENDPOINT: 'http://a' }, 'PLATFORM_OTLP_ENDPOINT: this host sends no traces'],
    ['router', { ROUTER_DB: 'router.db' }, 'ROUTER_DB: this host has no files'],
    ['router', { ROUTER_CONFIG: '/etc/router.toml' }, 'ROUTER_CONFIG: this host has no files'],
    ['router', { ROUTER_SIGNING_KEY_FILE: '/etc/key' }, 'ROUTER_SIGNING_KEY_FILE: this host has no files'],
    ['router', { ROUTER_DIRECTORY_URL: 'http://a' }, 'ROUTER_DIRECTORY_URL: this host serves one store'],
    ['router', { ROUTER_DB_REPLICA_OF: 'http://a' }, 'ROUTER_DB_REPLICA_OF: this host has no files'],
    [
      'router',
      { ROUTER_CONFIG_TEXT: '[[gate]]\nid = "g"\nkind = "subprocess"\ncmd = ["true"]\n' },
      'this host cannot start processes: use an http gate instead',
    ],
  ] as const)('%s refuses %o, which cannot be had there, by name', async (name, vars, sentence) => {
    const on = await worker(name, vars)
    const sent = await fetch(new URL('/healthz', on.url))
    expect([sent.status, await sent.text()]).toEqual([500, expect.stringContaining(sentence)])
  })
})
