import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dropMovedCopy, moveToShard, undoShardMove } from '../../runtime/host/move-shard.ts'
import type { RuntimeService } from '../../runtime/host/node.ts'
import { withDirectory } from '../../runtime/host/shard-admin.ts'
import { MOVE_POINTS } from '../../runtime/shards/move/move-tenant.ts'
import { FRAMES, MOVED } from '../../runtime/shards/move/moved-tables.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import type { Budget } from '../../shared/wire/runtime/budget.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import { sqldAvailable } from '../backends/sqld.ts'
import { programEnv } from '../program-env.ts'
import { slice } from '../slice.ts'
import { callAt, newTenant, type ShardedStores, serveHere, shardedStores } from './fixture.ts'

/** Of the installation, of a node, or written anew where the tenant arrives. */
const STAYING: readonly string[] = [
  'runtime_meta',
  'setup_tokens',
  'receipt_keys',
  'data_keys',
  'key_leases',
  'run_labels',
  'run_search_docs',
  'tunnel_runs',
  'tunnel_taken',
  'tunnel_outbox',
  'tunnel_children',
  'tunnel_nodes',
  'schema_steps',
]

const here = await sqldAvailable()
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

describe.runIf(here)('a tenant that is moved between two libSQL servers', () => {
  let stores: ShardedStores
  let service: RuntimeService
  let origin: string
  beforeAll(async () => {
    stores = await shardedStores(['a', 'b'])
    service = await serveHere(stores)
    origin = service.origin
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await stores?.close()
  })

  const shardOf = (id: string) => withDirectory(stores.vars, async shards => (await shards.shardOf(id))?.shard)

  /** Asks again while it is refused for a moment, as a client does. */
  async function surely<T>(method: string, path: string, key: string, body?: object, idempotency?: string) {
    for (let tries = 0; ; tries++) {
      const headers: Record<string, string> = idempotency === undefined ? {} : { 'idempotency-key': idempotency }
      const told = await callAt<T>(origin, method, path, { key, headers, ...(body && { body }) })
      const open = told.status === 503 || JSON.stringify(told.body).includes('idempotency_in_progress')
      if (!open || tries > 300) return { ...told, refused: tries }
      if (told.status === 503) expect(told.headers.get('retry-after')).toMatch(/^[25]$/)
      await pause(100)
    }
  }

  /** Makes runs until it is stopped; each has two tool calls, and each of three clients rests between its own. */
  function working({ key }: { key: string }, restMs = 20) {
    const ids: string[] = []
    let over = false
    let refused = 0
    const clients = [0, 1, 2].map(async client => {
      for (let n = 0; !over; n++) {
        const body = { agentName: 'worker', input: { prompt: '/call*2 wait {"seconds":0}' }, labels: { n: String(n) } }
        const made = await surely<Run>('POST', '/v1/runs', key, body, `${client}-${n}`)
        expect(made.status, JSON.stringify(made.body)).toBe(201)
        refused += made.refused
        ids.push(made.body.id)
        await pause(restMs)
      }
    })
    return {
      ids,
      get refused() {
        return refused
      },
      async stop() {
        over = true
        await Promise.all(clients)
      },
    }
  }

  /** Every run ended once, the budget is what they used, and every receipt holds. */
  async function checked({ key }: { key: string }, ids: readonly string[]) {
    expect(new Set(ids).size).toBe(ids.length)
    let tokens = 0
    for (const id of ids) {
      await expect
        .poll(async () => isTerminal((await callAt<Run>(origin, 'GET', `/v1/runs/${id}`, { key })).body.status), {
          timeout: 40_000,
        })
        .toBe(true)
      const { body: run } = await callAt<Run>(origin, 'GET', `/v1/runs/${id}`, { key })
      expect([run.status, run.error]).toEqual(['succeeded', undefined])
      tokens += run.tokensIn + run.tokensOut
      const journal = (await callAt<JournalExport>(origin, 'GET', `/v1/runs/${id}/journal`, { key })).body
      expect(journal.events.map(({ seq }) => seq)).toEqual(journal.events.map((_, at) => at + 1))
      const done = journal.events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
      expect(new Set(done).size).toBe(done.length)
      const receipt = (await callAt<Receipt>(origin, 'GET', `/v1/runs/${id}/receipt`, { key })).body
      const told = await callAt(origin, 'POST', '/v1/runs/receipts/verify', { key, body: { receipt, journal } })
      expect(told.body).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
    }
    const { body: budget } = await callAt<Budget>(origin, 'GET', '/v1/agents/worker/budget', { key })
    expect(budget.today, JSON.stringify(budget)).toMatchObject({
      runs: ids.length,
      reserved: { tokens: 0, costUsd: 0 },
    })
    expect(budget.today.tokens).toBeGreaterThanOrEqual(tokens)
  }

  /** A move as a command of its own, which gets a signal where it has reached a point. */
  function moving(tenantId: string, to: string, point: string, signal = 'SIGKILL') {
    const script = new URL('move-child.ts', import.meta.url).pathname
    const child = spawn(process.execPath, [script, tenantId, to, point, signal], {
      env: { ...programEnv, ...stores.vars },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [out, said] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    return { process: child, said: () => said, reached: () => out.trim().split('\n') }
  }

  it('every table is moved, or said to stay', async () => {
    const db = await openDb(stores.urls.get('a')!)
    const found = await db.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite%'")
    await db.close()
    const names = rowsOf<{ name: string }>(found).map(({ name }) => name)
    const search = /^(?:run_search|libsql_)/
    const known = [...MOVED.map(({ table }) => table), ...STAYING, FRAMES]
    expect(names.filter(name => !search.test(name) && !known.includes(name))).toEqual([])
    expect(known.filter(name => !names.includes(name) && !search.test(name))).toEqual([])
  })

  it('goes on working: nothing is lost, done twice or unproven, and other tenants notice nothing', async () => {
    const tenant = await newTenant(origin, 'moves')
    const from = (await shardOf(tenant.id))!
    const to = from === 'a' ? 'b' : 'a'
    let beside = await newTenant(origin, 'beside')
    while ((await shardOf(beside.id)) !== from) beside = await newTenant(origin, 'beside')
    await callAt(origin, 'PUT', '/v1/agents/worker/budget', { key: tenant.key, body: { maxRunsPerDay: 100_000 } })
    const [work, other] = [working(tenant), working(beside)]
    await pause(1500)
    // Under way at the fence: one that sleeps, and calls that are open.
    for (const seconds of [7, 4, 3, 2]) {
      const body = { agentName: 'worker', input: { prompt: `/call*1 wait {"seconds":${seconds}}` } }
      const made = await surely<Run>('POST', '/v1/runs', tenant.key, body, `long-${seconds}`)
      work.ids.push(made.body.id)
    }
    const schedule = { agentName: 'worker', cronExpr: '0 0 1 1 *', config: { input: { prompt: 'yearly' } } }
    const scheduled = await surely<Schedule>('POST', '/v1/schedules', tenant.key, schedule)
    expect(scheduled.status, JSON.stringify(scheduled.body)).toBe(201)
    const before = work.ids.length
    const { fencedMs } = await moveToShard(stores.vars, { tenantId: tenant.id, to })
    const during = work.ids.length
    await pause(1500)
    await Promise.all([work.stop(), other.stop()])
    expect(await shardOf(tenant.id)).toBe(to)
    expect(before).toBeGreaterThan(5)
    expect(during).toBeGreaterThan(before)
    expect(work.ids.length).toBeGreaterThan(during)
    expect(work.refused).toBeGreaterThan(0)
    expect(other.refused).toBe(0)
    await checked(tenant, work.ids)
    const again = await surely<Schedule>('GET', `/v1/schedules/${scheduled.body.id}`, tenant.key)
    expect(again.body).toEqual(scheduled.body)
    expect(fencedMs).toBeLessThan(10_000)
    await dropMovedCopy(stores.vars, tenant.id)
    await checked(tenant, work.ids)
    // Nothing of it is left there, and nothing reminds of the move.
    const db = await openDb(stores.urls.get(from)!)
    for (const table of ['tenants', 'runs', 'events', 'agents', 'receipts']) {
      const rows = rowsOf<{ n: number }>(
        await db.execute(
          `select count(*) as n from ${table} where ${table === 'tenants' ? 'id' : table === 'events' ? '(select tenant_id from runs where id = run_id)' : 'tenant_id'} = '${tenant.id}'`,
        ),
      )
      expect(rows[0]!.n, table).toBe(0)
    }
    const left = await db.execute("select name from sqlite_master where name like 'shard%'")
    expect(left.rows).toEqual([])
    await db.close()
    await other.stop()
  }, 120_000)

  it.each(slice('killed moves', [...MOVE_POINTS], 3))(
    'a move that is killed where it has %s is finished, or taken back',
    async point => {
      const ended = async (ending: 'again' | '--back') => {
        const tenant = await newTenant(origin, `killed at ${point}`)
        const from = (await shardOf(tenant.id))!
        const to = from === 'a' ? 'b' : 'a'
        await callAt(origin, 'PUT', '/v1/agents/worker/budget', { key: tenant.key, body: { maxRunsPerDay: 100_000 } })
        const work = working(tenant, 100)
        const body = { agentName: 'worker', input: { prompt: '/call*1 wait {"seconds":5}' } }
        work.ids.push((await surely<Run>('POST', '/v1/runs', tenant.key, body, 'long')).body.id)
        await pause(500)
        const child = moving(tenant.id, to, point)
        const [, signal] = (await once(child.process, 'close')) as [number, string]
        expect([signal, child.said()]).toEqual(['SIGKILL', ''])
        await pause(500)
        const switched = MOVE_POINTS.indexOf(point) >= MOVE_POINTS.indexOf('switched')
        if (ending === 'again') {
          await moveToShard(stores.vars, { tenantId: tenant.id, to })
          expect(await shardOf(tenant.id)).toBe(to)
        } else if (switched) {
          await expect(undoShardMove(stores.vars, tenant.id)).rejects.toThrow(/is at . already/)
          await dropMovedCopy(stores.vars, tenant.id)
        } else {
          await undoShardMove(stores.vars, tenant.id)
          expect(await shardOf(tenant.id)).toBe(from)
          await expect(undoShardMove(stores.vars, tenant.id)).rejects.toThrow(/not being moved/)
        }
        await pause(1500)
        await work.stop()
        await checked(tenant, work.ids)
      }
      await Promise.all([ended('again'), ended('--back')])
    },
    180_000,
  )

  it.each(
    slice(
      'halted moves',
      [
        { point: 'noting', ending: '--forget' },
        { point: 'checked', ending: 'again' },
        { point: 'fenced', ending: '--back' },
        { point: 'compared', ending: 'again' },
        { point: 'compared', ending: '--back' },
        { point: 'compared', ending: '--forget' },
      ] as const,
      1,
    ),
  )(
    'a move that is halted where it has $point, and done by another command ($ending), does nothing any more',
    async ({ point, ending }) => {
      const tenant = await newTenant(origin, `halted at ${point}`)
      const from = (await shardOf(tenant.id))!
      const to = from === 'a' ? 'b' : 'a'
      await callAt(origin, 'PUT', '/v1/agents/worker/budget', { key: tenant.key, body: { maxRunsPerDay: 100_000 } })
      const work = working(tenant, 100)
      const child = moving(tenant.id, to, point, 'SIGSTOP')
      await expect.poll(child.reached, { timeout: 30_000 }).toContain(point)
      if (ending === '--back') await undoShardMove(stores.vars, tenant.id)
      else await moveToShard(stores.vars, { tenantId: tenant.id, to })
      if (ending === '--forget') await dropMovedCopy(stores.vars, tenant.id)
      const place = ending === '--back' ? from : to
      expect(await shardOf(tenant.id)).toBe(place)
      await pause(1000)
      const before = work.ids.length
      const ended = once(child.process, 'close')
      child.process.kill('SIGCONT')
      const [code] = (await ended) as [number | null]
      expect([code, child.said()]).toEqual([1, expect.stringContaining('another command has taken over the move')])
      await expect.poll(() => work.ids.length, { timeout: 20_000 }).toBeGreaterThan(before + 3)
      await work.stop()
      expect(await shardOf(tenant.id)).toBe(place)
      await checked(tenant, work.ids)
    },
    120_000,
  )
})
