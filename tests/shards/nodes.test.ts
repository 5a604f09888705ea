import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { moveToShard } from '../../runtime/host/move-shard.ts'
import type { RuntimeService } from '../../runtime/host/node.ts'
import { withDirectory } from '../../runtime/host/shard-admin.ts'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { sqldAvailable } from '../backends/sqld.ts'
import { nodePool } from '../scale/node-pool.ts'
import { callAt, newTenant, type ShardedStores, serveHere, shardedStores } from './fixture.ts'

const here = await sqldAvailable()

describe.runIf(here)('nodes of tenants in several shards', () => {
  let stores: ShardedStores
  let service: RuntimeService
  let pool: Awaited<ReturnType<typeof nodePool>>
  const tenants = new Map<string, { id: string; key: string }>()
  beforeAll(async () => {
    stores = await shardedStores(['a', 'b'])
    const port = await freePort()
    service = await serveHere(stores, {
      PLATFORM_TUNNEL_BIND: `127.0.0.1:${port}`,
      PLATFORM_EMBEDDED_NODE: 'off',
    })
    pool = await nodePool(2, `http://127.0.0.1:${port}`)
    for (let number = 0; tenants.size < 2; number++) {
      const tenant = await newTenant(service.origin, `t${number}`)
      const place = await withDirectory(stores.vars, shards => shards.shardOf(tenant.id))
      tenants.set(place!.shard, tenant)
    }
    for (const [at, { key }] of [...tenants.values()].entries()) {
      const made = await callAt<NodeCreated>(service.origin, 'POST', '/v1/nodes', { key, body: { name: `n${at}` } })
      pool.nodes[at]!.start(made.body.enrolToken)
    }
  }, 120_000)
  afterAll(async () => {
    await pool?.close()
    await service?.close()
    await stores?.close()
  })

  async function online({ key }: { key: string }) {
    await expect
      .poll(
        async () => (await callAt<Node[]>(service.origin, 'GET', '/v1/nodes', { key })).body.map(one => one.status),
        {
          timeout: 30_000,
        },
      )
      .toEqual(['online'])
  }

  async function make({ key }: { key: string }, prompt: string): Promise<string> {
    for (;;) {
      const body = { agentName: 'worker', input: { prompt } }
      const made = await callAt<Run>(service.origin, 'POST', '/v1/runs', { key, body })
      if (made.status === 201) return made.body.id
      expect([made.status, made.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^[25]$/)])
      await new Promise(resolve => setTimeout(resolve, 200))
    }
  }

  async function proven({ key }: { key: string }, id: string) {
    const read = async () => (await callAt<Run>(service.origin, 'GET', `/v1/runs/${id}`, { key })).body
    await expect.poll(async () => isTerminal((await read()).status), { timeout: 60_000 }).toBe(true)
    const run = await read()
    expect([run.status, run.error]).toEqual(['succeeded', undefined])
    const journal = (await callAt<JournalExport>(service.origin, 'GET', `/v1/runs/${id}/journal`, { key })).body
    const receipt = (await callAt<Receipt>(service.origin, 'GET', `/v1/runs/${id}/receipt`, { key })).body
    const told = await callAt(service.origin, 'POST', '/v1/runs/receipts/verify', { key, body: { receipt, journal } })
    expect(told.body).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok' } })
    return run
  }

  it('dial one tunnel, and each works for its own tenant', async () => {
    for (const tenant of tenants.values()) {
      await online(tenant)
      await proven(tenant, await make(tenant, '/call*2 wait {"seconds":0}'))
    }
  }, 90_000)

  it('follow their tenant to another shard, with the runs that they hold', async () => {
    const tenant = tenants.get('a')!
    const ids = [await make(tenant, '/call*1 wait {"seconds":6}'), await make(tenant, '/call*1 wait {"seconds":1}')]
    const moving = moveToShard(stores.vars, { tenantId: tenant.id, to: 'b' })
    for (let made = 0; made < 4; made++) {
      ids.push(await make(tenant, '/call*1 wait {"seconds":0}'))
      await new Promise(resolve => setTimeout(resolve, 300))
    }
    await moving
    ids.push(await make(tenant, '/call*1 wait {"seconds":0}'))
    await online(tenant)
    const nodes = new Set<string | undefined>()
    for (const id of ids) nodes.add((await proven(tenant, id)).nodeId)
    expect(nodes.size).toBe(1)
  }, 120_000)
})
