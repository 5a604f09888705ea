import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { addShard } from '../../router/host/shards/shard-admin.ts'
import { freePort } from '../../scripts/bench/free-port.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { programEnv } from '../program-env.ts'
import { routingConfig, slowProvider } from './many-processes.ts'

const TENANTS = ['acme', 'beta', 'gamma', 'delta']
const keyOf = (tenant: string) => `${tenant}-secret-of-24-characters-`
const ASK = JSON.stringify({ model: 'auto', max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] })

async function ended(child: ChildProcess): Promise<void> {
  const end = once(child, 'exit')
  child.kill('SIGTERM')
  expect((await end)[0]).toBe(0)
}

/** The records of these stores: of whom each is. */
async function storedIn(stores: readonly string[]): Promise<Map<string, string>> {
  const seen = new Map<string, string>()
  for (const url of stores) {
    const db = await openDb(url, { readOnly: true })
    for (const row of (await db.execute('select trace_id, tenant_id from traces')).rows)
      seen.set(String(row.trace_id), String(row.tenant_id))
    db.close()
  }
  return seen
}

it('two routers over two shards, killed in turn: each answered call has its receipt, each tenant one chain that verifies', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-shard-kill-'))
  const provider = await slowProvider()
  const config = join(folder, 'router.toml')
  await writeFile(config, routingConfig(provider.origin, '[budget]\nper_day_usd = 100\n'))
  const vars = {
    ROUTER_DIRECTORY_URL: join(folder, 'directory.db'),
    ROUTER_CONFIG: config,
    ROUTER_KEYS: TENANTS.map(tenant => `${tenant}:${keyOf(tenant)}`).join(','),
    ROUTER_TENANT: 'acme',
    ROUTER_RECEIPTS: 'durable',
    ROUTER_SIGNING_KEY: Buffer.alloc(32, 8).toString('base64'),
    RUST_LOG: 'off',
  }
  const stores = [join(folder, 'a.db'), join(folder, 'b.db')]
  await addShard(vars, { name: 'a', url: stores[0]! })
  await addShard(vars, { name: 'b', url: stores[1]! })
  const routers: { child: ChildProcess; origin: string }[] = []

  async function start(at: number): Promise<void> {
    const bind = `127.0.0.1:${await freePort()}`
    const child = spawn(process.execPath, ['router/cli/main.ts', 'serve', '--bind', bind], {
      env: { ...programEnv, ...vars },
      stdio: 'ignore',
    })
    routers[at] = { child, origin: `http://${bind}` }
    await expect
      .poll(async () => (await fetch(`http://${bind}/readyz`).catch(() => undefined))?.status, { timeout: 60_000 })
      .toBe(200)
  }

  const answered = new Map<string, string>()
  let over = false
  async function client(number: number): Promise<void> {
    const tenant = TENANTS[number % TENANTS.length]!
    for (let tries = number; !over; tries++) {
      try {
        const got = await fetch(`${routers[tries % 2]!.origin}/v1/messages`, {
          method: 'POST',
          body: ASK,
          headers: { 'content-type': 'application/json', 'x-router-key': keyOf(tenant) },
        })
        await got.arrayBuffer()
        if (got.status === 200) answered.set(got.headers.get('x-router-trace-id')!, tenant)
      } catch {
        // The router of this call was killed.
      }
    }
  }

  try {
    await Promise.all([start(0), start(1)])
    const clients = Promise.all(Array.from({ length: 8 }, (_, number) => client(number)))
    for (const at of [0, 1, 0]) {
      const before = answered.size
      await expect.poll(() => answered.size, { timeout: 60_000 }).toBeGreaterThan(before + 60)
      const { child } = routers[at]!
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      await start(at)
    }
    over = true
    await clients
    for (const { child } of routers) await ended(child)
    // What one could not write while the other did is in a file beside the store, and the next router brings it in.
    await start(0)
    let seen = new Map<string, string>()
    await expect
      .poll(
        async () => {
          seen = await storedIn(stores)
          return [...answered].filter(([id, tenant]) => seen.get(id) !== tenant)
        },
        { timeout: 60_000, interval: 250 },
      )
      .toEqual([])
    await ended(routers[0]!.child)
    seen = await storedIn(stores)
    const chains = await Promise.all(stores.map(url => storedIn([url])))
    expect(chains.flatMap(of => [...new Set(of.values())]).toSorted()).toEqual(TENANTS.toSorted())
    const env = { ...programEnv, ...vars }
    const { stdout } = await promisify(execFile)(process.execPath, ['router/cli/main.ts', 'verify'], { env })
    expect(stdout).toContain(`valid: ${seen.size} records`)
  } finally {
    over = true
    for (const { child } of routers) child?.kill('SIGKILL')
    provider.close()
    await rm(folder, { recursive: true, force: true })
  }
}, 240_000)
