import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { scriptedUpstream, silence } from '../upstream/scripted.ts'

it('sheds calls above max_concurrency with 503 and retry-after, and still answers for itself', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-shed-'))
  const upstream = await scriptedUpstream()
  upstream.always(silence)
  const config = join(folder, 'routing.toml')
  await writeFile(config, 'limits = { max_concurrency = 2 }\n')
  const router = await serveRouter({
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DB: ':memory:',
    ROUTER_CONFIG: config,
    ROUTER_UPSTREAM_MESSAGES: upstream.origin,
    ROUTER_DRAIN_SECONDS: '0',
    RUST_LOG: 'off',
  })
  const abort = new AbortController()
  const call = () => fetch(`${router.origin}/v1/messages`, { method: 'POST', body: '{}', signal: abort.signal })
  const held = [call(), call()].map(one => one.catch((error: unknown) => error))
  await expect.poll(() => upstream.seen.length).toBe(2)

  const shed = await call()
  expect([shed.status, shed.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await shed.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
  expect(shed.headers.get('x-router-trace-id')).toMatch(/^[0-9a-f-]{36}$/)
  expect((await fetch(`${router.origin}/healthz`)).status).toBe(200)
  const metrics = await (await fetch(`${router.origin}/metrics`)).text()
  expect(metrics).toContain('router_shed_total{reason="concurrency"} 1\n')
  expect(upstream.seen).toHaveLength(2)

  abort.abort()
  await Promise.all(held)
  await router.close()
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})
