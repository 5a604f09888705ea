import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { parseKeys } from '../../router/auth/keys.ts'
import { serveRouter } from '../../router/host/node.ts'
import { TransportError } from '../../router/upstream/transport.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { messagesFrames } from '../upstream/answers.ts'
import { type ScriptedUpstream, scriptedUpstream, silence } from '../upstream/scripted.ts'
import { testRouter } from './routers.ts'
import { servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
beforeEach(async () => {
  upstream = await scriptedUpstream()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await upstream.close()
})

const BODY = { method: 'POST', body: '{"model":"m"}', headers: { 'content-type': 'application/json' } }

it.each([true, false])('holds observed calls to the time-outs of the config (direct: %s)', async direct => {
  const env = { ROUTER_UPSTREAM_MESSAGES: upstream.origin }
  const router = await servedRouter({ config: 'limits = { first_byte_ms = 300 }', env, direct })
  upstream.queue(silence)
  const got = await fetch(`${router.origin}/v1/messages`, BODY)
  expect(got.status).toBe(502)
  const id = got.headers.get('x-router-trace-id')
  expect(await got.json()).toMatchObject({ type: 'error', request_id: id })
  const { receipts } = await router.stop()
  expect(receipts).toMatchObject([{ trace_id: id, attempts: [{ error_class: 'timeout' }] }])
})

it('cuts an answer that broke off and writes one line about it, on every host', async () => {
  const said = vi.spyOn(console, 'error').mockReturnValue()
  const router = await servedRouter({ env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin }, direct: false })
  const frames = messagesFrames(['one']).slice(0, 3).join('')
  upstream.queue(response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(frames)
    setTimeout(() => response.destroy(), 50)
  })
  const got = await fetch(`${router.origin}/v1/messages`, BODY)
  let text = ''
  const reading = (async () => {
    for await (const chunk of got.body!) text += new TextDecoder().decode(chunk)
  })()
  await expect(reading).rejects.toThrow()
  expect(text).toBe(frames)
  await router.stop()
  const lines = router.logs
    .map(line => JSON.parse(line) as { level: string; msg?: string })
    .filter(({ level }) => level === 'warn')
  expect(lines).toMatchObject([{ trace_id: got.headers.get('x-router-trace-id') }])
  expect(said).not.toHaveBeenCalled()
})

it('reads the config again when its file changes, if it is to watch it, and keeps the old one when the new one is wrong', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-watch-'))
  const file = join(folder, 'routing.toml')
  await writeFile(file, 'limits = { max_concurrency = 2 }\n')
  const router = await serveRouter({
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DB: ':memory:',
    ROUTER_CONFIG: file,
    ROUTER_WATCH: '1',
    RUST_LOG: 'off',
  })
  const limits = async () => {
    const got = await fetch(`${router.origin}/v1/capabilities`)
    return ((await got.json()) as { limits: { max_concurrency: number } }).limits.max_concurrency
  }
  expect(await limits()).toBe(2)
  await writeFile(file, 'limits = { max_concurrency = 3 }\n')
  await expect.poll(limits, { timeout: 20_000 }).toBe(3)
  await writeFile(join(folder, 'next'), 'limits = { max_concurrency = "x" }\n')
  await rename(join(folder, 'next'), file)
  const metrics = async () => (await fetch(`${router.origin}/metrics`)).text()
  await expect.poll(metrics, { timeout: 20_000 }).toContain('router_config_reloads_total{result="error"} 1')
  expect(await limits()).toBe(3)
  await router.close()
  await rm(folder, { recursive: true, force: true })
})

it('shows a tenant the routes that are for it, and not who else they are for', async () => {
  const [acme, ops] = ['acme-secret-of-24-characters', 'ops-secret-of-24-characters-']
  const config = ['["rival-of-acme"]', '["acme", "partner"]', '[]']
    .map(tenants => `[[route]]\nmatch = { ${tenants === '[]' ? '' : `tenant = ${tenants}`} }\n`)
    .join('')
  const { router, close } = await testRouter({
    config,
    access: {
      keys: parseKeys(`acme:${acme},ops!:${ops}`, sha256),
      reach: 'network',
      insecure: false,
      metricsOpen: false,
    },
  })
  const seen = async (key: string) => {
    const request = new Request('http://router/v1/capabilities', { headers: { 'x-router-key': key } })
    const { routes } = (await (await router.fetch(request)).json()) as { routes: { ix: number; match: object }[] }
    return routes.map(({ ix, match }) => [ix, match])
  }
  expect(await seen(acme)).toEqual([
    [1, { tenant: ['acme'] }],
    [2, {}],
  ])
  expect(await seen(ops)).toHaveLength(3)
  await close()
})

it('says of a certificate that is not trusted what is wrong with it', async () => {
  const cause = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  const failed = new TransportError('the upstream could not be reached', { cause })
  const { post, close } = await testRouter({
    transport: { send: () => Promise.reject(failed), close: async () => undefined },
  })
  const got = await post('/v1/messages', { model: 'm' })
  expect(got.status).toBe(502)
  expect(await got.json()).toMatchObject({ error: { message: expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT') } })
  await close()
})
