import { cp, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { atTerminal } from '../../runtime/cli/testing/terminal-fixture.ts'
import { moveToShard } from '../../runtime/host/move-shard.ts'
import type { RuntimeService } from '../../runtime/host/node.ts'
import { withDirectory } from '../../runtime/host/shard-admin.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Tenant } from '../../shared/wire/runtime/auth.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { callAt, newTenant, type ShardedStores, serveHere, shardedStores } from './fixture.ts'

let stores: ShardedStores
let service: RuntimeService
const tenants: { id: string; key: string; runs: string[] }[] = []

const start = async () => {
  service = await serveHere(stores)
}

async function ran({ key }: { key: string }): Promise<string> {
  const body = { agentName: 'worker', input: { prompt: 'hello' } }
  const made = await callAt<Run>(service.origin, 'POST', '/v1/runs', { key, body })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  await callAt(service.origin, 'GET', `/v1/runs/${made.body.id}/events`, { key })
  return made.body.id
}

beforeAll(async () => {
  stores = await shardedStores(['a', 'b'], { servers: false })
  await start()
  for (const name of ['one', 'two']) {
    const tenant = await newTenant(service.origin, name)
    tenants.push({ ...tenant, runs: [await ran(tenant), await ran(tenant)] })
  }
}, 60_000)
afterAll(async () => {
  await service?.close()
  await stores?.close()
})

const run = (args: string[], more: Record<string, string> = {}) =>
  atTerminal(args, { ...stores.vars, PLATFORM_URL: service.origin, ...more })

it('shards list says what each has, and shards add refuses what would break them', async () => {
  const listed = await run(['shards', 'list', '--json'])
  expect(listed.code).toBe(0)
  expect(
    (JSON.parse(listed.out) as { name: string; tenants: number; runs: number }[]).map(one => [
      one.name,
      one.tenants,
      one.runs,
    ]),
  ).toEqual([
    ['a', 2, 2],
    ['b', 1, 2],
  ])
  expect(await run(['shards', 'add', 'A', '--url', join(stores.folder, 'x.db')])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/named with letters, digits and - in lower case/),
  })
  expect(await run(['shards', 'add', 'c', '--url', stores.urls.get('a')!])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/shard a is there already/),
  })
  const withToken = await run(['shards', 'add', 'c', '--url', 'http://127.0.0.1:1/?authToken=token-canary'])
  expect([withToken.code, withToken.err.includes('token-canary')]).toEqual([1, false])
  expect(withToken.err).toMatch(/set PLATFORM_DATABASE_TOKEN/)
  const used = join(stores.folder, 'used.db')
  const other = await openDb(used)
  await other.close()
  const begun = await atTerminal(['keys', 'create', '--name', 'k'], {
    ...stores.vars,
    PLATFORM_DIRECTORY_URL: '',
    PLATFORM_DATABASE_URL: used,
  })
  expect(begun.code, begun.err).toBe(0)
  expect(await run(['shards', 'add', 'c', '--url', used])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/is in use, by tenant default: give an empty one/),
  })
})

it('commands of one store are refused where there are several', async () => {
  expect(await run(['compact'])).toMatchObject({
    code: 2,
    err: expect.stringMatching(/PLATFORM_DIRECTORY_URL is set, so that this installation has no store of its own/),
  })
})

it('one database beside the directory is refused before anything is opened', async () => {
  await expect(serveHere(stores, { PLATFORM_DATABASE_URL: join(stores.folder, 'other.db') })).rejects.toThrow(
    /PLATFORM_DIRECTORY_URL names the databases: leave PLATFORM_DATABASE_URL .* out/,
  )
})

it('the doctor examines every shard', async () => {
  const said = await run(['doctor', '--json'])
  const found = JSON.parse(said.out) as { about: string; is: string; says: string }[]
  expect(found.filter(({ is }) => is === 'fail')).toEqual([])
  const about = found.map(one => one.about)
  for (const one of ['directory', 'store a', 'store b', 'master key a', 'master key b']) expect(about).toContain(one)
  const other = await run(['doctor', '--json'], { PLATFORM_MASTER_KEY: Buffer.alloc(32, 1).toString('base64') })
  expect(other.code).toBe(1)
  expect(
    (JSON.parse(other.out) as { about: string; is: string }[]).filter(({ is }) => is === 'fail').map(one => one.about),
  ).toEqual(['master key a', 'master key b'])
})

it('keys are made, listed and revoked where their tenant is', async () => {
  for (const { id } of tenants) {
    const made = await run(['keys', 'create', '--tenant', id, '--name', 'cli'])
    expect(made.code, made.err).toBe(0)
    const key = made.out.trim()
    expect((await callAt(service.origin, 'GET', '/v1/runs', { key })).status).toBe(200)
    const listed = await run(['keys', 'list', '--tenant', id])
    expect(listed.out).toContain('cli')
    const keyId = /key (\S+);/.exec(made.err)![1]!
    expect((await run(['keys', 'revoke', keyId])).code).toBe(0)
    await expect
      .poll(async () => (await callAt(service.origin, 'GET', '/v1/runs', { key })).status, { timeout: 5000 })
      .toBe(401)
  }
  expect(await run(['keys', 'list', '--tenant', 'ghost'])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/no tenant with the id ghost/),
  })
})

it('a new receipt key is the one of every shard, and a stolen one is revoked in every shard', async () => {
  const before = (await run(['keys', 'rotate'])).out.trim()
  const rotated = await run(['keys', 'rotate'])
  expect(rotated.code, rotated.err).toBe(0)
  const id = rotated.out.trim()
  for (const url of stores.urls.values()) {
    const db = await openDb(url)
    const { rows } = await db.execute("select key_id from receipt_keys where status = 'active'")
    expect(rows.map(row => row.key_id)).toEqual([id])
    await db.close()
  }
  expect(await run(['keys', 'revoke', before])).toMatchObject({ code: 0, err: '' })
  for (const url of stores.urls.values()) {
    const db = await openDb(url)
    const { rows } = await db.execute("select key_id from receipt_keys where status = 'revoked'")
    expect(rows.map(row => row.key_id)).toEqual([before])
    await db.close()
  }
})

it('archive, export and usage work for the tenants of every shard through one origin', async () => {
  for (const { id, key, runs } of tenants) {
    const folder = join(stores.folder, `archive-${id}`)
    await mkdir(folder)
    const archived = await run(['archive', '--days', '0', '--to', folder], { PLATFORM_API_KEY: key })
    expect(archived.code, archived.err).toBe(0)
    const file = (await readdir(folder)).find(name => name.startsWith('runs-'))!
    const lines = (await readFile(join(folder, file), 'utf8')).trim().split('\n')
    expect(new Set(lines.map(line => (JSON.parse(line) as { run: Run }).run.id))).toEqual(new Set(runs))
    const verified = await run(['archive', 'verify', join(folder, file), '--key', join(folder, 'keys.json')])
    expect([verified.code, verified.out]).toEqual([0, `${runs.length} of ${runs.length} runs valid\n`])
    const usage = await callAt<UsageItem[]>(service.origin, 'GET', '/v1/usage?groupBy=agent', { key })
    expect(usage.body.map(item => item.runs)).toEqual([runs.length])
    expect((await run(['usage'], { PLATFORM_API_KEY: key })).code).toBe(0)
  }
})

it('the master key is rotated in every shard, or in none while a service runs', async () => {
  const next = join(stores.folder, 'next.key')
  expect(await run(['keys', 'rotate-master', '--to', next])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/a service of shard a is running/),
  })
  await service.close()
  // One that died between two shards: the first is under the new key, the second is not.
  const half = { ...stores.vars, PLATFORM_DIRECTORY_URL: '', PLATFORM_DATABASE_URL: stores.urls.get('a')! }
  expect((await atTerminal(['keys', 'rotate-master', '--to', next], half)).code).toBe(0)
  const rotated = await run(['keys', 'rotate-master', '--to', next])
  expect([rotated.code, rotated.out], rotated.err).toEqual([0, expect.stringMatching(/^[1-9]\d* keys wrapped anew/)])
  expect((await run(['keys', 'rotate-master', '--to', next])).out).toMatch(/^0 keys wrapped anew/)
  stores.vars.PLATFORM_MASTER_KEY = (await readFile(next, 'utf8')).trim()
  await start()
  for (const tenant of tenants) {
    const { key, runs } = tenant
    const read = await callAt<Run>(service.origin, 'GET', `/v1/runs/${runs[0]}`, { key })
    expect(read.body.input).toEqual({ prompt: 'hello' })
    runs.push(await ran(tenant))
  }
})

it('a backup of a running service has every shard, and is restored as a whole', async () => {
  const folder = join(stores.folder, 'backup')
  const saved = await run(['backup', folder])
  expect(saved.code, saved.err).toBe(0)
  expect((await readdir(folder)).toSorted()).toEqual(['a.db', 'b.db', 'directory.db'])
  expect(await run(['restore', folder])).toMatchObject({ code: 1, err: expect.stringMatching(/is there already/) })
  await service.close()
  for (const path of [stores.vars.PLATFORM_DIRECTORY_URL!, ...stores.urls.values()]) {
    for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
  }
  const edited = join(stores.folder, 'edited')
  await cp(folder, edited, { recursive: true })
  const db = await openDb(join(edited, 'b.db'))
  await db.execute("update events set hash = '00' where seq = 2")
  await db.execute('pragma wal_checkpoint(truncate)')
  db.close()
  expect(await run(['restore', edited])).toMatchObject({ code: 1, err: expect.stringMatching(/nothing was restored/) })
  await rm(join(edited, 'b.db'))
  expect((await run(['restore', edited])).code).toBe(3)
  const restored = await run(['restore', folder])
  expect([restored.code, restored.out], restored.err).toEqual([
    ...[0, expect.stringMatching(/^restored; 6 of 6 receipts hold\nits last change is of \S+Z; [^\n]+\n$/)],
  ])
  await start()
  for (const { key, runs } of tenants) {
    for (const id of runs) {
      expect((await callAt<Receipt>(service.origin, 'GET', `/v1/runs/${id}/receipt`, { key })).status).toBe(200)
    }
  }
})

/** The tenants as the administrator gets them, one on each page. */
async function listed(): Promise<string[]> {
  const seen: string[] = []
  for (let path: string | undefined = '/v1/tenants?limit=1'; path !== undefined; ) {
    const page: { body: Tenant[]; headers: Headers } = await callAt<Tenant[]>(service.origin, 'GET', path)
    seen.push(...page.body.map(one => one.id))
    path = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1]
  }
  return seen.sort()
}

it('a tenant that was moved is archived and counted as before', async () => {
  const { id, key, runs } = tenants[0]!
  const from = await withDirectory(stores.vars, async shards => (await shards.shardOf(id))!.shard)
  const to = from === 'a' ? 'b' : 'a'
  await moveToShard(stores.vars, { tenantId: id, to })
  const all = [...tenants.map(one => one.id), 'default'].sort()
  expect(await listed()).toEqual(all)
  const warned = JSON.parse((await run(['doctor', '--json'])).out) as { about: string; is: string; says: string }[]
  expect(warned.find(({ about }) => about === 'directory')).toMatchObject({
    is: 'warn',
    says: expect.stringContaining(`--forget\` for ${id}`),
  })
  const back = await run(['shards', 'move', id, '--to', from])
  expect(back).toMatchObject({ code: 1, err: expect.stringMatching(/its old copy has to be deleted first/) })
  expect((await run(['shards', 'move', id, '--forget'])).code).toBe(0)
  const folder = join(stores.folder, 'archive-moved')
  expect((await run(['archive', '--days', '0', '--to', folder], { PLATFORM_API_KEY: key })).code).toBe(0)
  const file = (await readdir(folder)).find(name => name.startsWith('runs-'))!
  const verified = await run(['archive', 'verify', join(folder, file), '--key', join(folder, 'keys.json')])
  expect([verified.code, verified.out]).toEqual([0, `${runs.length} of ${runs.length} runs valid\n`])
  // And back again, as if it had never been away.
  expect((await run(['shards', 'move', id, '--to', from])).code).toBe(0)
  expect(await listed()).toEqual(all)
  const usage = await callAt<UsageItem[]>(service.origin, 'GET', '/v1/usage?groupBy=agent', { key })
  expect(usage.body.map(item => item.runs)).toEqual([runs.length])
}, 60_000)
