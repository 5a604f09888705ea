import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { atTerminal } from '../../runtime/cli/testing/terminal-fixture.ts'
import { addShard, withDirectory } from '../../runtime/host/shard-admin.ts'
import type { Budget } from '../../shared/wire/runtime/budget.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { sqldAvailable } from '../backends/sqld.ts'
import { programEnv } from '../program-env.ts'
import { newTenant, type ShardedStores, shardedStores } from '../shards/fixture.ts'
import { isFull } from '../slice.ts'
import { cluster } from './cluster.ts'

/** What has to hold is 20,000; a few are enough to see each time that it still works. */
const RUNS = Number(process.env.WAYBILL_MOVE_RUNS || (isFull ? 1000 : 200))
const CLIENTS = RUNS > 1000 ? 48 : 12
const here = await sqldAvailable()
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

describe.runIf(here)('a tenant with many runs, served by two control planes', () => {
  let stores: ShardedStores
  let group: Awaited<ReturnType<typeof cluster>>
  beforeAll(async () => {
    stores = await shardedStores(['a'])
    group = await cluster('', 2, {
      PLATFORM_DATABASE_URL: '',
      ...own(),
      PLATFORM_LEASE_TTL: '30s',
      PLATFORM_MAX_CONCURRENT_RUNS: '64',
    })
  }, 120_000)
  afterAll(async () => {
    await group?.close()
    await stores?.close()
  })
  const own = () => ({
    PLATFORM_DIRECTORY_URL: stores.vars.PLATFORM_DIRECTORY_URL!,
    PLATFORM_MASTER_KEY: stores.vars.PLATFORM_MASTER_KEY!,
  })

  it('is moved to another server while it works: every run ends once, is counted once and is proven', async () => {
    const admin = group.headers().authorization.slice('Bearer '.length)
    const { id, key } = await newTenant(group.instances[0]!.origin, 'large', admin)
    let longestRefusal = 0
    let refused = 0

    async function surely(method: string, path: string, body?: object, idempotency?: string) {
      const began = performance.now()
      for (let tries = Math.floor(Math.random() * 2); ; tries++) {
        const headers = {
          authorization: `Bearer ${key}`,
          ...(idempotency !== undefined && { 'idempotency-key': idempotency }),
        }
        const told = await group.call(group.instances[tries % 2]!, method, path, body, headers)
        const open = told?.status === 409 && told.text.includes('idempotency_in_progress')
        if (told && told.status < 500 && !open) {
          if (tries > 1) longestRefusal = Math.max(longestRefusal, performance.now() - began)
          return told
        }
        if (told)
          expect([told.status, JSON.parse(told.text)]).toEqual([told.status === 409 ? 409 : 503, expect.anything()])
        refused++
        if (performance.now() - began > 60_000) throw new Error(`${method} ${path}: ${told?.status} ${told?.text}`)
        await pause(100)
      }
    }

    expect((await surely('PUT', '/v1/agents/worker/budget', { maxRunsPerDay: 10 * RUNS })).status).toBe(200)
    const ids: string[] = []
    let number = 0
    let over = false
    const began = performance.now()
    const clients = Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        while (!over) {
          const made = await surely(
            'POST',
            '/v1/runs',
            { agentName: 'worker', input: { prompt: 'hello' } },
            `run-${number++}`,
          )
          expect(made.status, made.text).toBe(201)
          ids.push((JSON.parse(made.text) as Run).id)
          // A client waits for each of its runs, so that they do not pile up.
          await surely('GET', `/v1/runs/${ids.at(-1)}/events`)
          if (ids.length > RUNS) await pause(100)
        }
      }),
    )
    while (ids.length < RUNS) await pause(200)
    const filledMs = performance.now() - began

    // A server that was not there at the start.
    const b = await (await import('../backends/sqld.ts')).startSqld()
    stores.servers.set('b', b)
    await addShard(stores.vars, { name: 'b', url: b.primaryUrl })
    await pause(7000)
    const before = ids.length
    const movedAt = performance.now()
    const child = spawn(
      process.execPath,
      [new URL('../../runtime/cli/main.ts', import.meta.url).pathname, 'shards', 'move', id, '--to', 'b'],
      { env: { ...programEnv, ...stores.vars }, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        said += String(chunk)
      })
    }
    const [code] = (await once(child, 'exit')) as [number]
    expect(code, said).toBe(0)
    const moveMs = performance.now() - movedAt
    const during = ids.length - before
    await pause(2000)
    over = true
    await clients
    expect(await withDirectory(stores.vars, async shards => (await shards.shardOf(id))?.shard)).toBe('b')
    expect(during).toBeGreaterThan(0)
    expect(new Set(ids).size).toBe(ids.length)

    const env = { PLATFORM_URL: group.instances[0]!.origin, PLATFORM_API_KEY: key }
    const to = join(stores.folder, 'archive')
    const isOpen = async () =>
      (JSON.parse((await surely('GET', '/v1/runs?status=running&limit=1')).text) as Run[]).length
    await expect.poll(isOpen, { timeout: 60_000 }).toBe(0)
    const archived = await atTerminal(['archive', '--days', '0', '--to', to], env)
    expect(archived.code, archived.err).toBe(0)
    const file = (await readdir(to)).find(name => name.startsWith('runs-'))!
    const verified = await atTerminal(['archive', 'verify', join(to, file), '--key', join(to, 'keys.json')], {})
    expect([verified.code, verified.out]).toEqual([0, `${ids.length} of ${ids.length} runs valid\n`])
    const usage = JSON.parse((await surely('GET', '/v1/usage?groupBy=agent')).text) as UsageItem[]
    expect(usage.map(row => row.runs)).toEqual([ids.length])
    const { today } = JSON.parse((await surely('GET', '/v1/agents/worker/budget')).text) as Budget
    expect(today).toMatchObject({ runs: ids.length, reserved: { tokens: 0, costUsd: 0 } })
    expect(longestRefusal).toBeLessThan(30_000)
    console.log(
      `${before} runs (made in ${Math.round(filledMs / 1000)} s), moved in ${Math.round(moveMs / 1000)} s while ${during} more were made; ${refused} calls were refused, ` +
        `the longest wait was ${(longestRefusal / 1000).toFixed(1)} s; all ${ids.length} receipts hold. ${said.trim().split('\n').at(-1)}`,
    )
  }, 1_800_000)
})
