import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Service } from '../../shared/host/serve.ts'
import { capabilities } from '../../shared/wire/router/capabilities.ts'
import { traceDetail } from '../../shared/wire/router/traces.ts'
import { eventually } from '../../tests/eventually.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { serveRouter } from './node.ts'

const ACME = 'acme-secret-of-24-characters'
const OPS = 'ops-secret-of-24-characters-'

let upstream: ScriptedUpstream
let folder: string
let service: Service | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-access-'))
  upstream = await scriptedUpstream()
  upstream.always(answer(200, JSON.stringify(messagesAnswer('ok'))))
})
afterEach(async () => {
  await service?.close()
  service = undefined
  upstream.seen.length = 0
})
afterAll(async () => {
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})

async function start(vars: Record<string, string> = {}) {
  service = await serveRouter({
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DB: ':memory:',
    ROUTER_UPSTREAM_MESSAGES: upstream.origin,
    ROUTER_LOG: 'off',
    ...vars,
  })
  const { origin } = service
  return (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(origin + path, { method, headers })
}

const ask = (call: Awaited<ReturnType<typeof start>>, headers: Record<string, string>) =>
  call('/v1/messages', headers, 'POST')

describe('the Node host', () => {
  it('does not relay past its keys, keeps the tenant of the key, and passes the provider key on untouched', async () => {
    const file = join(folder, 'keys')
    await writeFile(file, `# tenants\nacme:${ACME}\nops!:${OPS}\n`)
    const call = await start({ ROUTER_KEYS: `@${file}` })
    expect((await ask(call, { 'x-api-key': ACME })).status).toBe(401)
    expect(upstream.seen).toHaveLength(0)
    const got = await ask(call, { 'x-router-key': ACME, 'x-api-key': 'sk-provider' })
    await got.text()
    expect(got.status).toBe(200)
    const sent = upstream.seen[0]?.rawHeaders ?? []
    expect(sent).toContain('sk-provider')
    expect(sent.join(' ')).not.toMatch(/x-router|acme-secret/i)
    const id = got.headers.get('x-router-trace-id')
    const own = await call(`/-/traces/${id}`, { 'x-router-key': ACME })
    expect(traceDetail.parse(await own.json()).trace).toMatchObject({ tenant_id: 'acme', mode: 'observe' })
    expect((await call(`/-/traces/${id}`)).status).toBe(401)
    expect((await call('/healthz')).status).toBe(200)
  })

  it('asks for nothing on loopback, but lets no page of another site in', async () => {
    const call = await start()
    expect((await ask(call, { origin: 'http://evil.example' })).status).toBe(403)
    expect(upstream.seen).toHaveLength(0)
    expect((await call('/-/traces')).status).toBe(200)
    expect((await call('/-/traces', { origin: 'http://evil.example' })).status).toBe(403)
    expect(capabilities.parse(await (await call('/v1/capabilities')).json()).auth.required).toBe(false)
  })

  it('starts on a network address without keys, with its audit and metrics closed', async () => {
    const call = await start({ ROUTER_BIND: '0.0.0.0:0' })
    const local = service!.origin.replace('0.0.0.0', '127.0.0.1')
    expect(call).toBeDefined()
    expect((await fetch(`${local}/-/traces`)).status).toBe(401)
    expect((await fetch(`${local}/v1/messages`, { method: 'POST' })).status).toBe(200)
    const metrics = await fetch(`${local}/metrics`)
    expect([metrics.status, await metrics.text()]).toEqual([401, expect.stringContaining('ROUTER_METRICS_OPEN=1')])
  })

  it('counts what is in flight', async () => {
    const call = await start()
    const gauge = async () => /router_in_flight_requests (\d+)/.exec(await (await call('/metrics')).text())?.[1]
    const held = Promise.withResolvers<void>()
    upstream.queue(async response => {
      await held.promise
      response.end('{}')
    })
    const open = ask(call, {})
    // The page's own request counts as well.
    await eventually(async () => expect(await gauge()).toBe('2'))
    held.resolve()
    await (await open).text()
    await eventually(async () => expect(await gauge()).toBe('1'))
  })

  it('reads its config file again when it is told to', async () => {
    const file = join(folder, 'router.toml')
    const config = (queue: number) => `store = { queue = ${queue} }\n`
    await writeFile(file, config(100))
    const call = await start({ ROUTER_CONFIG: file })
    const reload = async () => {
      const got = await call('/-/reload', {}, 'POST')
      return { status: got.status, body: (await got.json()) as object }
    }
    expect(await reload()).toMatchObject({ status: 200, body: { changed: false, restart_required: [] } })
    await writeFile(file, config(200))
    expect(await reload()).toMatchObject({ status: 200, body: { changed: true, restart_required: ['store.queue'] } })
    await rm(file)
    expect(await reload()).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining(file) } } })
    expect((await call('/-/reload')).status).toBe(405)
  })
})
