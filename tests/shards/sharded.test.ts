import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RuntimeService } from '../../runtime/host/node.ts'
import { withDirectory } from '../../runtime/host/shard-admin.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Tenant } from '../../shared/wire/runtime/auth.ts'
import type { Readyz } from '../../shared/wire/runtime/health.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { sqldAvailable } from '../backends/sqld.ts'
import { callAt, newTenant, type ShardedStores, serveHere, shardedStores } from './fixture.ts'

const here = await sqldAvailable()

describe.runIf(here)('two shards on two libSQL servers, behind one origin', () => {
  let stores: ShardedStores
  let service: RuntimeService
  let origin: string
  const tenants: { id: string; key: string }[] = []
  beforeAll(async () => {
    stores = await shardedStores(['a', 'b'])
    service = await serveHere(stores)
    origin = service.origin
    for (let number = 0; number < 4; number++) tenants.push(await newTenant(origin, `t${number}`))
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await stores?.close()
  })

  /** A run of a tenant, to its end. */
  async function ran({ key }: { key: string }): Promise<Run> {
    const body = { agentName: 'worker', input: { prompt: 'hello' } }
    const made = await callAt<Run>(origin, 'POST', '/v1/runs', { key, body })
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    await callAt(origin, 'GET', `/v1/runs/${made.body.id}/events`, { key })
    return (await callAt<Run>(origin, 'GET', `/v1/runs/${made.body.id}`, { key })).body
  }

  it('spread tenants, and each tenant works where it is', async () => {
    const places = await withDirectory(stores.vars, async shards =>
      Promise.all(tenants.map(async ({ id }) => (await shards.shardOf(id))?.shard)),
    )
    expect(new Set(places)).toEqual(new Set(['a', 'b']))
    for (const [at, tenant] of tenants.entries()) {
      const run = await ran(tenant)
      expect(run.status).toBe('succeeded')
      const { key } = tenant
      const receipt = (await callAt<Receipt>(origin, 'GET', `/v1/runs/${run.id}/receipt`, { key })).body
      const journal = (await callAt<JournalExport>(origin, 'GET', `/v1/runs/${run.id}/journal`, { key })).body
      const verified = await callAt(origin, 'POST', '/v1/runs/receipts/verify', { key, body: { receipt, journal } })
      expect(verified.body).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
      const listed = await callAt<Run[]>(origin, 'GET', '/v1/runs', { key })
      expect(listed.body.map(({ id }) => id)).toEqual([run.id])
      // It stands in that database and in no other.
      for (const [name, url] of stores.urls) {
        const db = await openDb(url)
        const { rows } = await db.execute({ sql: 'select 1 from runs where id = ?', args: [run.id] })
        expect(rows.length, name).toBe(name === places[at] ? 1 : 0)
        await db.close()
      }
    }
  }, 60_000)

  it('the keys of another tenant open nothing, and unknown ones are refused in the words of one store', async () => {
    const [first, second] = [tenants[0]!, tenants[1]!]
    const run = await ran(first)
    expect((await callAt(origin, 'GET', `/v1/runs/${run.id}`, { key: second.key })).status).toBe(404)
    const unknown = await callAt<{ error: string }>(origin, 'GET', '/v1/runs', { key: `wb_live_${'u'.repeat(43)}` })
    expect([unknown.status, unknown.body.error]).toEqual([401, expect.stringMatching(/unknown, revoked or expired/)])
    expect((await fetch(`${origin}/v1/runs`)).status).toBe(401)
    // What only the platform's administrator may do is refused to a tenant's key.
    expect((await callAt(origin, 'GET', '/v1/tenants', { key: first.key })).status).toBe(403)
  })

  it('the administrator lists the tenants of all shards, page by page, each once', async () => {
    const seen: string[] = []
    let path: string | undefined = '/v1/tenants?limit=2'
    for (let pages = 0; path !== undefined && pages < 10; pages++) {
      const page: { body: Tenant[]; headers: Headers } = await callAt<Tenant[]>(origin, 'GET', path)
      expect(page.body.length).toBeLessThanOrEqual(2)
      seen.push(...page.body.map(({ id }) => id))
      path = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1]
    }
    expect(seen).toEqual([...tenants.map(({ id }) => id).reverse(), 'default'])
  })

  it('a tenant is made once for each Idempotency-Key, in one shard, and can be removed', async () => {
    const make = () =>
      callAt<Tenant>(origin, 'POST', '/v1/tenants', { body: { name: 'once' }, headers: { 'idempotency-key': 'k1' } })
    const [first, second] = [await make(), await make()]
    expect(second.body).toEqual(first.body)
    const { id } = first.body
    expect((await callAt(origin, 'DELETE', `/v1/tenants/${id}`)).status).toBe(204)
    expect((await callAt(origin, 'DELETE', `/v1/tenants/${id}`)).status).toBe(404)
    expect(await withDirectory(stores.vars, shards => shards.shardOf(id))).toBeUndefined()
  })

  it('a tenant whose maker died before the directory heard of it is found', async () => {
    const { id } = tenants[0]!
    await withDirectory(stores.vars, shards => shards.forget(id))
    const again = await serveHere(stores)
    try {
      expect((await callAt(again.origin, 'GET', '/v1/agents', { key: tenants[0]!.key })).status).toBe(200)
    } finally {
      await again.close()
    }
    expect(await withDirectory(stores.vars, shards => shards.shardOf(id))).toBeDefined()
  })

  it('readiness, metrics and receipt keys are of all shards', async () => {
    const ready = await callAt<Readyz>(origin, 'GET', '/readyz')
    expect([ready.status, ready.body]).toEqual([
      200,
      { status: 'ready', checks: { database: 'ok', migrations: 'ok', masterKey: 'ok' } },
    ])
    const { body: page } = await callAt<string>(origin, 'GET', '/metrics')
    for (const shard of ['a', 'b'])
      expect(page).toMatch(new RegExp(`^waybill_build_info\\{.*shard="${shard}"\\} 1$`, 'm'))
    expect(page.match(/^# TYPE waybill_build_info /gm)).toHaveLength(1)
    const keys = await callAt<{ keys: unknown[] }>(origin, 'GET', '/.well-known/platform-receipts')
    expect(keys.body.keys).toHaveLength(1)
  })

  it('a server that is away takes no other shard with it', async () => {
    const places = await withDirectory(stores.vars, async shards =>
      Promise.all(tenants.map(async ({ id }) => (await shards.shardOf(id))?.shard)),
    )
    const [inA, inB] = [tenants[places.indexOf('a')]!, tenants[places.indexOf('b')]!]
    await stores.servers.get('b')!.down()
    try {
      const refused = await callAt<{ code: string }>(origin, 'GET', '/v1/runs', { key: inB.key })
      expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([
        503,
        'store_unavailable',
        '5',
      ])
      expect((await ran(inA)).status).toBe('succeeded')
      const ready = await callAt<Readyz>(origin, 'GET', '/readyz')
      expect([ready.status, ready.body.checks.database]).toEqual([200, expect.stringMatching(/^shard b: /)])
      const storesUp = async (at: string) =>
        (await callAt<string>(at, 'GET', '/metrics')).body.match(/^waybill_store_up.*$/gm)?.toSorted()
      const oneAway = ['waybill_store_up{shard="a"} 1', 'waybill_store_up{shard="b"} 0']
      expect(await storesUp(origin)).toEqual(oneAway)
      // One that starts now serves what it can reach, and the rest once it is back.
      const late = await serveHere(stores)
      try {
        expect((await callAt(late.origin, 'GET', '/v1/runs', { key: inA.key })).status).toBe(200)
        expect(await storesUp(late.origin)).toEqual(oneAway)
        await stores.servers.get('b')!.back()
        await expect
          .poll(async () => (await callAt(late.origin, 'GET', '/v1/runs', { key: inB.key })).status, {
            timeout: 10_000,
          })
          .toBe(200)
      } finally {
        await late.close()
      }
    } finally {
      await stores.servers
        .get('b')!
        .back()
        .catch(() => undefined)
    }
    await expect.poll(async () => (await callAt(origin, 'GET', '/v1/runs', { key: inB.key })).status).toBe(200)
  }, 60_000)
})
