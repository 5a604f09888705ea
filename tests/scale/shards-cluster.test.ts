import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { atTerminal } from '../../runtime/cli/testing/terminal-fixture.ts'
import { addShard, withDirectory } from '../../runtime/host/shard-admin.ts'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { Budget } from '../../shared/wire/runtime/budget.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { eventually } from '../eventually.ts'
import { newTenant } from '../shards/fixture.ts'
import { isFull } from '../slice.ts'
import { cluster } from './cluster.ts'
import { balancer, nodePool } from './node-pool.ts'

/** What has to hold is 10,000 and 30 s; a few are enough to see each time that it still works. */
const RUNS = Number(process.env.WAYBILL_SHARDS_RUNS || (isFull ? 200 : 48))
const AWAY_MS = Number(process.env.WAYBILL_OUTAGE_MS || (isFull ? 10_000 : 3000))
const CLIENTS = RUNS > 1000 ? 16 : 8
const SHARDS = ['a', 'b', 'c', 'd']
const here = await sqldAvailable()
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

interface TenantAt {
  id: string
  key: string
  shard: string
  runs: string[]
  /** Whether its runs go to a node of its own. */
  onNode: boolean
  /** What was not answered by a process that is there: 5xx. */
  refused: number
}

describe.runIf(here)('three control planes and four nodes over four shards, each on a server of its own', () => {
  let folder: string
  let directory: Sqld
  const servers = new Map<string, Sqld>()
  let vars: Record<string, string>
  let group: Awaited<ReturnType<typeof cluster>>
  let tunnel: Awaited<ReturnType<typeof balancer>>
  let pool: Awaited<ReturnType<typeof nodePool>>
  const tenants: TenantAt[] = []
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-shards-cluster-'))
    directory = await startSqld()
    vars = {
      PLATFORM_DIRECTORY_URL: directory.primaryUrl,
      PLATFORM_DATABASE_URL: '',
      PLATFORM_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
      PLATFORM_DATA_DIR: join(folder, 'data'),
    }
    for (const name of SHARDS) {
      const server = await startSqld()
      servers.set(name, server)
      await addShard(vars, { name, url: server.primaryUrl })
    }
    const ports = [await freePort(), await freePort(), await freePort()]
    tunnel = await balancer(ports)
    group = await cluster('', 3, (number, origin) => ({
      PLATFORM_DIRECTORY_URL: directory.primaryUrl,
      PLATFORM_DATABASE_URL: '',
      PLATFORM_TUNNEL_BIND: `127.0.0.1:${ports[number]}`,
      PLATFORM_PEER_URL: origin,
    }))
    const { origin } = group.instances[0]!
    const key = group.headers().authorization.slice('Bearer '.length)
    for (let number = 0; number < 2 * SHARDS.length - 1; number++) {
      const tenant = await newTenant(origin, `t${number}`, key)
      const place = await withDirectory(vars, shards => shards.shardOf(tenant.id))
      tenants.push({ ...tenant, shard: place!.shard, runs: [], onNode: false, refused: 0 })
    }
    // One tenant of each shard has a node; what its agent runs goes there.
    pool = await nodePool(SHARDS.length, tunnel.url)
    for (const [number, shard] of SHARDS.entries()) {
      const tenant = tenants.find(one => one.shard === shard)!
      tenant.onNode = true
      const made = await surely(tenant, 'POST', '/v1/nodes', { name: `node-${number}` })
      pool.nodes[number]!.start((JSON.parse(made.text) as NodeCreated).enrolToken)
      const online = async () => (await json<Node[]>(tenant, '/v1/nodes')).map(({ status }) => status)
      await eventually(async () => expect(await online()).toEqual(['online']), { timeout: 60_000 })
      const labels = { 'waybill.pool': 'default' }
      const changed = await surely(tenant, 'PATCH', '/v1/agents/worker', { labels })
      expect(changed.status, changed.text).toBe(200)
    }
    tunnel.spread()
    for (const tenant of tenants) tenant.refused = 0
  }, 240_000)
  afterAll(async () => {
    await pool?.close()
    await group?.close()
    await tunnel?.close()
    await Promise.all([directory, ...servers.values()].map(server => server?.stop()))
    await rm(folder, { recursive: true, force: true })
  })

  /** Asks one control plane after the other until it is answered. */
  async function surely(tenant: TenantAt, method: string, path: string, body?: object, key?: string) {
    for (let tries = Math.floor(Math.random() * 3); ; tries++) {
      const up = group.instances.filter(({ running }) => running)
      const headers = { authorization: `Bearer ${tenant.key}`, ...(key !== undefined && { 'idempotency-key': key }) }
      const told = await group.call(up[tries % up.length]!, method, path, body, headers)
      const open = told?.status === 409 && told.text.includes('idempotency_in_progress')
      if (told && told.status < 500 && !open) return told
      // Where a node is connected nowhere for a moment its shard still answers.
      if (told && told.status >= 500 && !told.text.includes('node_offline')) tenant.refused++
      if (tries > 1800)
        throw new Error(`${method} ${path}: ${told?.status} ${told?.text}\n${group.said.slice(-5).join('')}`)
      await pause(50)
    }
  }
  const json = async <T>(tenant: TenantAt, path: string) => JSON.parse((await surely(tenant, 'GET', path)).text) as T

  it('end every run once while one server is away and processes are killed, and the other shards notice nothing', async () => {
    for (const tenant of tenants) {
      expect((await surely(tenant, 'PUT', '/v1/agents/worker/budget', { maxRunsPerDay: 1_000_000 })).status).toBe(200)
    }
    let over = false
    const kills = { planes: 0, nodes: 0 }
    const killing = (async () => {
      while (!over) {
        await pause(isFull ? 3000 + Math.random() * 4000 : 1000 + Math.random() * 1500)
        if (over) break
        const victim = Math.floor(Math.random() * 7)
        const [plane, node] = [group.instances[victim], pool.nodes[victim - 3]]
        if (plane) {
          await plane.stop('SIGKILL')
          await plane.start()
          kills.planes++
        } else if (node) {
          await node.kill()
          await pause(300)
          node.start()
          kills.nodes++
        }
      }
    })()
    let duringOutage = 0
    let isAway = false
    let isBack = false
    const outage = (async () => {
      await pause(1000)
      await servers.get('d')!.down()
      isAway = true
      await pause(AWAY_MS)
      // On a busy machine a few seconds may be too short for anything to happen in the other shards.
      await eventually(() => expect(duringOutage).toBeGreaterThan(5), { timeout: 120_000 })
      isAway = false
      await servers.get('d')!.back()
      isBack = true
    })()
    const began = performance.now()
    let number = 0
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        // Clients of the shard that is away wait; those of the others go on.
        const own = tenants.filter(({ shard }) => (shard === 'd') === (client === 0))
        while (number < RUNS || !isBack) {
          const at = number++
          const tenant = own[at % own.length]!
          const body = { agentName: 'worker', input: { prompt: '/call*2 wait {"seconds":0}' } }
          const made = await surely(tenant, 'POST', '/v1/runs', body, `run-${at}`)
          expect(made.status, made.text).toBe(201)
          tenant.runs.push((JSON.parse(made.text) as Run).id)
          if (tenant.shard !== 'd' && isAway) duringOutage++
          if (!isFull) await pause(30)
        }
      }),
    )
    await outage
    for (const tenant of tenants) {
      await Promise.all(
        [0, 1, 2, 3].map(async part => {
          for (const id of tenant.runs.filter((_, at) => at % 4 === part)) {
            await expect
              .poll(async () => isTerminal((await json<Run>(tenant, `/v1/runs/${id}?fields=summary`)).status), {
                timeout: 120_000,
              })
              .toBe(true)
          }
        }),
      )
    }
    const tookMs = performance.now() - began
    over = true
    await killing

    const nodes = new Set<string>()
    for (const tenant of tenants) {
      const { runs, key, id } = tenant
      expect(new Set(runs).size).toBe(runs.length)
      let tokens = 0
      for (const run of runs) {
        const { status, error, nodeId, tokensIn, tokensOut } = await json<Run>(tenant, `/v1/runs/${run}?fields=summary`)
        const failed = status === 'succeeded' ? '' : (await surely(tenant, 'GET', `/v1/runs/${run}/journal`)).text
        expect([status, error], `${tenant.shard} ${failed}`).toEqual(['succeeded', undefined])
        tokens += tokensIn + tokensOut
        const journal = await json<JournalExport>(tenant, `/v1/runs/${run}/journal`)
        const done = journal.events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
        expect(new Set(done).size).toBe(done.length)
        if (!tenant.onNode) continue
        expect(nodeId).not.toBe('')
        const receipt = await json<Receipt>(tenant, `/v1/runs/${run}/receipt`)
        const { text } = await surely(tenant, 'POST', '/v1/runs/receipts/verify', { receipt, journal })
        const checks = { signature: 'ok', journal: 'ok', record: 'ok' }
        expect(JSON.parse(text)).toMatchObject({ valid: true, checks })
        nodes.add(String(nodeId))
      }
      const usage = await json<UsageItem[]>(tenant, '/v1/usage?groupBy=agent')
      expect(usage.map(row => [row.runs, row.tokensIn + row.tokensOut])).toEqual(
        runs.length === 0 ? [] : [[runs.length, tokens]],
      )
      const { today } = await json<Budget>(tenant, '/v1/agents/worker/budget')
      expect(today).toMatchObject({ runs: runs.length, reserved: { tokens: 0, costUsd: 0 } })
      // A tenant of the shard that was away may have no run; there is nothing to archive then.
      if (tenant.onNode || runs.length === 0) continue
      // Offline, by the command.
      const to = join(folder, id)
      const env = { PLATFORM_URL: group.instances[0]!.origin, PLATFORM_API_KEY: key }
      expect((await atTerminal(['archive', '--days', '0', '--to', to], env)).code).toBe(0)
      const file = (await readdir(to)).find(name => name.startsWith('runs-'))!
      const verified = await atTerminal(['archive', 'verify', join(to, file), '--key', join(to, 'keys.json')], {})
      expect([verified.code, verified.out]).toEqual([0, `${runs.length} of ${runs.length} runs valid\n`])
    }
    expect(nodes.size).toBe(SHARDS.length)
    const others = tenants.filter(({ shard }) => shard !== 'd')
    expect(others.map(({ refused }) => refused)).toEqual(others.map(() => 0))
    expect(tenants.filter(({ shard }) => shard === 'd').some(({ refused }) => refused > 0)).toBe(true)
    console.log(
      `${tenants.flatMap(({ runs }) => runs).length} runs on 3 control planes, 4 nodes and 4 shards in ${Math.round(tookMs / 1000)} s, ${kills.planes} control planes and ${kills.nodes} nodes killed, ` +
        `one server away for ${AWAY_MS / 1000} s: ${duringOutage} runs were made in the other shards meanwhile, and none of their calls was refused`,
    )
  }, 1_200_000)
})
