import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { addShard, listShards } from '../../router/host/shards/shard-admin.ts'
import type { TraceList } from '../../shared/wire/router/traces.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'

const here = await sqldAvailable()
const keyOf = (tenant: string) => `${tenant}-secret-of-24-characters-`

describe.runIf(here)('a router over two servers of which one is away', () => {
  let servers: Sqld[]
  let folder: string
  let upstream: ScriptedUpstream
  let vars: Record<string, string>
  beforeAll(async () => {
    servers = await Promise.all([startSqld(), startSqld()])
    folder = await mkdtemp(join(tmpdir(), 'waybill-shard-away-'))
    upstream = await scriptedUpstream()
    upstream.always(answer(200, '{"id":"msg_1","content":[]}'))
    vars = {
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_DIRECTORY_URL: join(folder, 'directory.db'),
      ROUTER_KEYS: `acme:${keyOf('acme')},beta:${keyOf('beta')},ops!:${keyOf('ops')}`,
      ROUTER_TENANT: 'acme',
      ROUTER_UPSTREAM_MESSAGES: upstream.origin,
      ROUTER_DRAIN_SECONDS: '0',
      RUST_LOG: 'off',
    }
    for (const [at, name] of ['a', 'b'].entries()) await addShard(vars, { name, url: servers[at]!.primaryUrl })
  }, 60_000)
  afterAll(async () => {
    await Promise.all(servers.map(server => server.stop()))
    await upstream?.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('refuses the tenants of that one in a sentence, and serves them once it is there; the others notice nothing', async () => {
    await servers[1]!.down()
    expect((await listShards(vars)).map(({ problem }) => problem === undefined)).toEqual([true, false])
    const router = await serveRouter(vars)
    async function at(path: string, tenant: string, init: RequestInit = {}) {
      const got = await fetch(router.origin + path, { ...init, headers: { 'x-router-key': keyOf(tenant) } })
      return { status: got.status, after: got.headers.get('retry-after'), text: await got.text() }
    }
    const called = (tenant: string) => at('/v1/messages', tenant, { method: 'POST', body: '{"model":"m"}' })
    try {
      expect((await called('acme')).status).toBe(200)
      const refused = await called('beta')
      expect(refused).toMatchObject({ status: 503, after: '5' })
      expect(JSON.parse(refused.text)).toMatchObject({
        type: 'error',
        error: { type: 'overloaded_error', message: expect.stringContaining('shard b) does not answer yet') },
      })
      for (const path of ['/-/traces', '/v1/capabilities']) {
        const own = await at(path, 'beta')
        expect([own.status, own.after], path).toEqual([503, '5'])
        expect(own.text).toContain('shard b')
        expect((await at(path, 'acme')).status, path).toBe(200)
      }
      const all = await at('/-/traces', 'ops')
      expect([all.status, all.text]).toEqual([503, expect.stringContaining('shard b does not answer')])
      const ready = await at('/readyz', 'acme')
      expect([ready.status, ready.text]).toEqual([200, expect.stringContaining('shard b: does not answer yet')])
      expect((await at('/healthz', 'beta')).status).toBe(200)
      expect((await fetch(`${router.origin}/-/traces`)).status).toBe(401)

      await servers[1]!.back()
      await expect.poll(async () => (await called('beta')).status, { timeout: 20_000 }).toBe(200)
      const seen = async () => JSON.parse((await at('/-/traces', 'ops')).text) as TraceList
      await expect
        .poll(async () => (await seen()).traces.map(({ tenant_id }) => tenant_id).toSorted(), { timeout: 10_000 })
        .toEqual(['acme', 'beta'])

      // Once it is open, a server that goes away delays receipts and refuses no call.
      await servers[1]!.down()
      expect([(await called('beta')).status, (await called('acme')).status]).toEqual([200, 200])
      expect((await at('/-/traces', 'beta')).status).toBe(503)
      expect((await at('/-/traces', 'acme')).status).toBe(200)
      await servers[1]!.back()
      await expect
        .poll(async () => (await seen()).traces.map(({ tenant_id }) => tenant_id).toSorted(), { timeout: 20_000 })
        .toEqual(['acme', 'acme', 'beta', 'beta'])
    } finally {
      await router.close()
    }
  }, 120_000)
})
