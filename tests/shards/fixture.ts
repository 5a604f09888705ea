import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RuntimeService, serveRuntime } from '../../runtime/host/node.ts'
import { addShard } from '../../runtime/host/shard-admin.ts'
import type { ApiKeyCreated, Tenant } from '../../shared/wire/runtime/auth.ts'
import { type Sqld, startSqld } from '../backends/sqld.ts'
import { noonZone } from '../noon-zone.ts'

export const KEY = `wb_live_${'s'.repeat(43)}`

export interface Answer<T> {
  status: number
  headers: Headers
  body: T
}

/** A call as a client makes it. */
export async function callAt<T>(
  origin: string,
  method: string,
  path: string,
  { key = KEY, body, headers = {} }: { key?: string; body?: object; headers?: Record<string, string> } = {},
): Promise<Answer<T>> {
  const answer = await fetch(origin + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  })
  const text = await answer.text()
  const json = answer.headers.get('content-type')?.startsWith('application/json') === true
  return { status: answer.status, headers: answer.headers, body: (json ? JSON.parse(text) : text) as T }
}

/** Shards by name, each on a server of its own or in a file, and a directory in a file. */
export async function shardedStores(names: readonly string[], { servers = true } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-shards-'))
  const started = new Map<string, Sqld>()
  const vars: Record<string, string> = {
    PLATFORM_DATA_DIR: join(folder, 'data'),
    PLATFORM_DIRECTORY_URL: join(folder, 'directory.db'),
    PLATFORM_MASTER_KEY: Buffer.alloc(32, 6).toString('base64'),
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_LOG_LEVEL: 'error',
    PLATFORM_RECOVERY_INTERVAL: '1s',
    PLATFORM_LEASE_TTL: '3s',
    PLATFORM_DEFAULT_TIMEZONE: noonZone(),
  }
  const urls = new Map<string, string>()
  for (const name of names) {
    const sqld = servers ? await startSqld() : undefined
    if (sqld) started.set(name, sqld)
    const url = sqld?.primaryUrl ?? join(folder, `${name}.db`)
    urls.set(name, url)
    await addShard(vars, { name, url })
  }
  return {
    folder,
    vars,
    urls,
    servers: started,
    async close() {
      await Promise.all([...started.values()].map(sqld => sqld.stop()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export type ShardedStores = Awaited<ReturnType<typeof shardedStores>>

/** A tenant with a key of its own and an agent. */
export async function newTenant(origin: string, name: string, admin = KEY): Promise<{ id: string; key: string }> {
  const made = await callAt<Tenant>(origin, 'POST', '/v1/tenants', { key: admin, body: { name } })
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  const { id } = made.body
  const minted = await callAt<ApiKeyCreated>(origin, 'POST', `/v1/tenants/${id}/api-keys`, {
    key: admin,
    body: { name: 'k' },
  })
  if (minted.status !== 201) throw new Error(JSON.stringify(minted.body))
  const key = minted.body.rawKey
  const body = { name: 'worker', manifest: { model: 'demo/echo', tools: ['wait'] } }
  const agent = await callAt(origin, 'POST', '/v1/agents', { key, body })
  if (agent.status !== 201) throw new Error(JSON.stringify(agent.body))
  return { id, key }
}

export const serveHere = (stores: ShardedStores, vars: Record<string, string> = {}): Promise<RuntimeService> =>
  serveRuntime({ ...stores.vars, ...vars })
