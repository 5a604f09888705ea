import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { addShard, setShardState } from '../../router/host/shards/shard-admin.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Checkpoint, CheckpointList } from '../../shared/wire/router/checkpoint.ts'
import type { FeedbackList } from '../../shared/wire/router/feedback.ts'
import type { Savings } from '../../shared/wire/router/savings.ts'
import type { TraceDetail, TraceList } from '../../shared/wire/router/traces.ts'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'

const TENANTS = ['acme', 'beta', 'gamma', 'delta'] as const
const keyOf = (tenant: string) => `${tenant}-secret-of-24-characters-`
const KEYS = [...TENANTS.map(tenant => `${tenant}:${keyOf(tenant)}`), `ops!:${keyOf('ops')}`].join(',')

/** A call costs 0.0005 USD and 0.0001 for each token of its answer. */
const config = (origin: string, budget = '') => `version = 1
price = [{ model = "up/best", input_per_mtok = 100, output_per_mtok = 100 }]
provider = [{ id = "up", dialect = "messages", base_url = "${origin}", auth = "none" }]
store = { checkpoint_records = 2 }
${budget}
[[route]]
match = {}
mode = "enforce"
ladder = ["up/best"]
gates = []
`

const ASK = { model: 'auto', max_tokens: 10, messages: [{ role: 'user', content: 'a prompt' }] }
const run = promisify(execFile)

interface Place {
  folder: string
  vars: Record<string, string>
  stores: Record<'a' | 'b', string>
}

/** A directory of two shards, each a file. */
async function twoShards(upstream: ScriptedUpstream, budget?: string): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-router-shards-'))
  const file = join(folder, 'router.toml')
  await writeFile(file, config(upstream.origin, budget))
  const vars = {
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DIRECTORY_URL: join(folder, 'directory.db'),
    ROUTER_CONFIG: file,
    ROUTER_KEYS: KEYS,
    ROUTER_TENANT: 'ops',
    ROUTER_SIGNING_KEY: Buffer.alloc(32, 5).toString('base64'),
    RUST_LOG: 'off',
  }
  const stores = { a: join(folder, 'a.db'), b: join(folder, 'b.db') }
  for (const name of ['a', 'b'] as const) await addShard(vars, { name, url: stores[name] })
  return { folder, vars, stores }
}

async function call(origin: string, tenant: string): Promise<{ status: number; id: string; text: string }> {
  const got = await fetch(`${origin}/v1/messages`, {
    method: 'POST',
    body: JSON.stringify(ASK),
    headers: { 'content-type': 'application/json', 'x-router-key': keyOf(tenant) },
  })
  return { status: got.status, id: got.headers.get('x-router-trace-id') ?? '', text: await got.text() }
}

async function read<T>(origin: string, path: string, tenant: string): Promise<T> {
  const got = await fetch(`${origin}${path}`, { headers: { 'x-router-key': keyOf(tenant) } })
  expect(got.status, path).toBe(200)
  return (await got.json()) as T
}

async function rows(url: string, sql: string): Promise<string[]> {
  const db = await openDb(url)
  try {
    return (await db.execute(sql)).rows.map(row => String(Object.values(row)[0]))
  } finally {
    db.close()
  }
}

const command = (vars: Record<string, string>, ...args: string[]) =>
  run(process.execPath, ['router/cli/main.ts', ...args], { env: { ...programEnv, ...vars } })

describe('a router over two shards', () => {
  let upstream: ScriptedUpstream
  let place: Place
  let router: Awaited<ReturnType<typeof serveRouter>>
  const made = new Map<string, string[]>()

  beforeAll(async () => {
    upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('good'))))
    place = await twoShards(upstream)
    router = await serveRouter(place.vars)
    for (let round = 0; round < 3; round++) {
      for (const tenant of TENANTS) {
        const { status, id, text } = await call(router.origin, tenant)
        expect(status, text).toBe(200)
        made.set(tenant, [...(made.get(tenant) ?? []), id])
      }
    }
    await eventually(async () =>
      expect((await read<TraceList>(router.origin, '/-/traces', 'ops')).traces).toHaveLength(12),
    )
  })
  afterAll(async () => {
    await router?.close()
    await upstream?.close()
    if (place) await rm(place.folder, { recursive: true, force: true })
  })

  it('keeps the chain of each tenant whole in one of them', async () => {
    const places = await rows(
      place.vars.ROUTER_DIRECTORY_URL!,
      "select tenant_id || ' ' || shard from router_shard_tenants order by tenant_id",
    )
    expect(places.map(one => one.split(' ')[1]).toSorted()).toEqual(['a', 'a', 'a', 'b', 'b'])
    for (const name of ['a', 'b'] as const) {
      const own = places.filter(one => one.endsWith(` ${name}`)).map(one => one.split(' ')[0]!)
      const found = await rows(place.stores[name], "select tenant_id || ' ' || seq from traces order by tenant_id, seq")
      const tenants = own.filter(tenant => tenant !== 'ops')
      expect(found).toEqual(tenants.flatMap(tenant => [0, 1, 2].map(seq => `${tenant} ${seq}`)))
    }
  })

  it('shows a tenant its own records, and who sees all tenants those of both shards', async () => {
    const own = await read<TraceList>(router.origin, '/-/traces', 'acme')
    expect(own.traces.map(({ trace_id }) => trace_id)).toEqual(made.get('acme')!.toReversed())
    const all: string[] = []
    for (let next: string | null = ''; next !== null; ) {
      const before = next === '' ? '' : `&before=${encodeURIComponent(next)}`
      const page: TraceList = await read<TraceList>(router.origin, `/-/traces?limit=5${before}`, 'ops')
      all.push(...page.traces.map(({ trace_id }) => trace_id))
      next = page.next
    }
    expect(all).toHaveLength(12)
    expect(new Set(all)).toEqual(new Set([...made.values()].flat()))
    const times = new Map(
      (await read<TraceList>(router.origin, '/-/traces', 'ops')).traces.map(one => [one.trace_id, one.ts]),
    )
    expect(all.map(id => times.get(id)!)).toEqual(
      all
        .map(id => times.get(id)!)
        .toSorted()
        .toReversed(),
    )
  })

  it("finds any record by its id for who sees all tenants, and no other tenant's for one", async () => {
    for (const tenant of TENANTS) {
      const [id = ''] = made.get(tenant)!
      const found = await read<TraceDetail>(router.origin, `/-/traces/${id}`, 'ops')
      expect(found.trace.tenant_id).toBe(tenant)
      const other = TENANTS.find(one => one !== tenant)!
      const refused = await fetch(`${router.origin}/-/traces/${id}`, { headers: { 'x-router-key': keyOf(other) } })
      expect(refused.status).toBe(404)
    }
  })

  it('adds up what was spent, and signs each chain where it is', async () => {
    const one = await read<Savings>(router.origin, '/-/savings', 'acme')
    const all = await read<Savings>(router.origin, '/-/savings?group=model', 'ops')
    expect([one.requests, all.requests]).toEqual([3, 12])
    expect(all.spent_usd).toBeCloseTo(4 * one.spent_usd, 9)
    expect(all.groups).toHaveLength(1)
    const signed: Checkpoint[] = []
    for (let next: string | null = ''; next !== null; ) {
      const after = next === '' ? '' : `&after=${encodeURIComponent(next)}`
      const page: CheckpointList = await read<CheckpointList>(router.origin, `/-/checkpoints?limit=2${after}`, 'ops')
      signed.push(...page.checkpoints)
      next = page.next
    }
    expect(new Set(signed.map(({ tenant_id }) => tenant_id))).toEqual(new Set(TENANTS))
    expect(new Set(signed.map(({ sig }) => sig)).size).toBe(signed.length)
    expect(new Set(signed.map(({ key_id }) => key_id)).size).toBe(1)
  })

  it('takes a report of who sees all tenants into the store of its trace', async () => {
    for (const tenant of TENANTS) {
      const told = await fetch(`${router.origin}/v1/feedback`, {
        method: 'POST',
        body: JSON.stringify({ request_id: made.get(tenant)![0], outcome: 'correct' }),
        headers: { 'content-type': 'application/json', 'x-router-key': keyOf('ops') },
      })
      expect(told.status, await told.text()).toBe(202)
      const listed = await read<FeedbackList>(router.origin, '/-/feedback/records', tenant)
      expect(listed.feedback.map(({ tenant_id }) => tenant_id)).toEqual([tenant])
    }
    const first = await read<FeedbackList>(router.origin, '/-/feedback/records?limit=3', 'ops')
    const rest = await read<FeedbackList>(router.origin, `/-/feedback/records?after=${first.next}`, 'ops')
    expect([...first.feedback, ...rest.feedback].map(({ tenant_id }) => tenant_id)).toEqual([...TENANTS].toSorted())
    const unknown = await fetch(`${router.origin}/v1/feedback`, {
      method: 'POST',
      body: JSON.stringify({ request_id: 'nothing', outcome: 'correct' }),
      headers: { 'content-type': 'application/json', 'x-router-key': keyOf('ops') },
    })
    expect(unknown.status).toBe(404)
  })

  it('counts on one page of metrics what both have done', async () => {
    const metrics = (name: string) => fetch(`${router.origin}/metrics`, { headers: { 'x-router-key': keyOf(name) } })
    // What others spend is not acme's to know.
    expect((await metrics('acme')).status).toBe(403)
    const page = await (await metrics('ops')).text()
    expect(page).toContain('router_requests_total{api="messages",mode="enforce",status_class="2xx"} 12\n')
    for (const tenant of TENANTS) expect(page).toContain(`router_cost_usd_total{tenant="${tenant}"}`)
  })

  it('reads its config anew in both', async () => {
    const file = place.vars.ROUTER_CONFIG!
    const changed = (await readFile(file, 'utf8')).replace(
      '[[route]]',
      '[[route]]\nmatch = { model = "other" }\nmode = "observe"\n[[route]]',
    )
    await writeFile(file, changed)
    const told = await fetch(`${router.origin}/-/reload`, { method: 'POST', headers: { 'x-router-key': keyOf('ops') } })
    expect(await told.json()).toMatchObject({ changed: true })
    const routes = await Promise.all(
      TENANTS.map(async tenant => (await read<{ routes: object[] }>(router.origin, '/v1/capabilities', tenant)).routes),
    )
    expect(routes.map(({ length }) => length)).toEqual([2, 2, 2, 2])
  })

  it('is verified, listed and exported over both from the terminal', async () => {
    const { stdout } = await command(place.vars, 'verify')
    expect(stdout).toContain('valid: 12 records')
    for (const tenant of TENANTS) expect(stdout).toMatch(new RegExp(`^${tenant}: 3 records, valid`, 'm'))
    expect((await command(place.vars, 'verify', '--tenant', 'beta')).stdout).toContain('valid: 3 records')
    const listed = await command(place.vars, 'trace', '--json')
    expect((JSON.parse(listed.stdout) as TraceList).traces).toHaveLength(12)
    const out = join(place.folder, 'log.jsonl')
    await command(place.vars, 'export', '--feedback', '--checkpoints', '--out', out)
    const checked = await command(place.vars, 'verify', '--file', out, '--allow-unsigned')
    expect(checked.stdout).toContain('valid: 12 records')
    const doctor = await command(place.vars, 'doctor').catch((error: { stdout: string }) => error)
    expect(doctor.stdout).toContain('directory of shards: 2 shards')
    for (const name of ['a', 'b']) expect(doctor.stdout).toContain(`store (shard ${name})`)
  })

  it('says which command needs the name of a tenant', async () => {
    const failed = await command(place.vars, 'ope', '--start-rung', '0').catch((error: { stderr: string }) => error)
    expect(failed.stderr).toContain('name one with --tenant')
  })
})

describe('caps over shards', () => {
  let upstream: ScriptedUpstream
  beforeAll(async () => {
    upstream = await scriptedUpstream()
    // No more than what a call reserves.
    const used = { ...messagesAnswer('good'), usage: { input_tokens: 5, output_tokens: 10 } }
    upstream.always(answer(200, JSON.stringify(used)))
  })
  afterAll(async () => {
    await upstream?.close()
  })

  it('hold for all tenants together, at once and after another start; each store keeps what its own have spent', async () => {
    // Each call reserves a bit more than it costs.
    const place = await twoShards(upstream, '[budget]\nper_day_usd = 0.03\n')
    let router = await serveRouter(place.vars)
    try {
      const many = await Promise.all(Array.from({ length: 40 }, (_, at) => call(router.origin, TENANTS[at % 4]!)))
      const paid = many.filter(({ status }) => status === 200).length
      expect(many.every(({ status }) => status === 200 || status === 402)).toBe(true)
      expect(paid).toBeGreaterThan(2)
      expect(paid).toBeLessThan(40)
      for (let at = 0; at < 40; at++) await call(router.origin, TENANTS[at % 4]!)
      const spent = async () => (await read<Savings>(router.origin, '/-/savings', 'ops')).spent_usd
      await eventually(async () => expect((await read<Savings>(router.origin, '/-/savings', 'ops')).requests).toBe(80))
      expect(await spent()).toBeLessThanOrEqual(0.03)
      await router.close()

      const common = await rows(place.vars.ROUTER_DIRECTORY_URL!, "select key || '=' || spent from router_budgets")
      expect(common).toHaveLength(1)
      expect(common[0]).toMatch(/^day\//)
      const total = Number(common[0]!.split('=')[1])
      let sum = 0
      const owners = new Map<string, string[]>()
      for (const name of ['a', 'b'] as const) {
        const own = await rows(
          place.stores[name],
          "select key || '=' || spent from router_budgets where key like 'tenant/%'",
        )
        owners.set(
          name,
          own.map(row => row.split('/')[1]!),
        )
        for (const row of own) sum += Number(row.split('=')[1])
        expect(await rows(place.stores[name], "select key from router_budgets where key like 'day/%'")).toEqual([])
      }
      expect(sum).toBe(total)
      expect(total).toBeLessThanOrEqual(30_000_000)
      expect([...owners.values()].flat().toSorted()).toEqual([...TENANTS].toSorted())

      router = await serveRouter(place.vars)
      const after = await Promise.all(TENANTS.map(tenant => call(router.origin, tenant)))
      expect(after.map(({ status }) => status)).toEqual([402, 402, 402, 402])
    } finally {
      await router.close()
      await rm(place.folder, { recursive: true, force: true })
    }
  }, 60_000)
})

describe('the directory of a router', () => {
  it('takes the store of a router as its first shard, whose chains go on, and no other store in use', async () => {
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('good'))))
    const place = await twoShards(upstream)
    const old = join(place.folder, 'old.db')
    const { ROUTER_DIRECTORY_URL: _, ...alone } = place.vars
    const before = await serveRouter({ ...alone, ROUTER_DB: old })
    for (let round = 0; round < 3; round++) expect((await call(before.origin, 'beta')).status).toBe(200)
    await before.close()
    const vars = { ...place.vars, ROUTER_DIRECTORY_URL: join(place.folder, 'second.db') }
    try {
      expect(await addShard(vars, { name: 'old', url: old })).toEqual(['beta'])
      await expect(addShard(vars, { name: 'a', url: old })).rejects.toThrow('is there already')
      await expect(addShard(vars, { name: 'd', url: vars.ROUTER_DIRECTORY_URL })).rejects.toThrow('is no shard')
      await addShard(vars, { name: 'new', url: place.stores.b })
      const salts = await Promise.all(
        [old, place.stores.b].map(url => rows(url, "select value from router_meta where key = 'prompt_salt'")),
      )
      expect(salts[0]).toEqual(salts[1])
      const router = await serveRouter(vars)
      for (const tenant of ['beta', 'acme', 'gamma']) expect((await call(router.origin, tenant)).status).toBe(200)
      await router.close()
      expect(await rows(old, "select seq from traces where tenant_id = 'beta' order by seq")).toEqual([
        '0',
        '1',
        '2',
        '3',
      ])
      expect(await rows(place.stores.b, 'select tenant_id from traces')).toEqual(['gamma'])
      expect((await command(vars, 'verify')).stdout).toContain('valid: 6 records')
      await expect(
        addShard({ ...vars, ROUTER_DIRECTORY_URL: join(place.folder, 'third.db') }, { name: 'x', url: place.stores.a }),
      ).resolves.toEqual([])
      await expect(
        addShard({ ...vars, ROUTER_DIRECTORY_URL: join(place.folder, 'third.db') }, { name: 'y', url: old }),
      ).rejects.toThrow('has records of tenant acme')
    } finally {
      await upstream.close()
      await rm(place.folder, { recursive: true, force: true })
    }
  }, 60_000)

  it('calls no log valid in which a tenant has two chains', async () => {
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('good'))))
    const place = await twoShards(upstream)
    const { ROUTER_DIRECTORY_URL: _, ...alone } = place.vars
    try {
      for (const url of Object.values(place.stores)) {
        const router = await serveRouter({ ...alone, ROUTER_DB: url })
        expect((await call(router.origin, 'beta')).status).toBe(200)
        await router.close()
      }
      const failed = await command(place.vars, 'verify').catch(
        (error: { code: number; stdout: string; stderr: string }) => error,
      )
      expect(failed).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('NOT VALID (two_shards)'),
        stderr: expect.stringContaining('beta has a chain in each of the shards a, b'),
      })
    } finally {
      await upstream.close()
      await rm(place.folder, { recursive: true, force: true })
    }
  }, 60_000)

  it('holds each chain against the copies of its checkpoints, in the shard where it is', async () => {
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('good'))))
    const place = await twoShards(upstream)
    const anchors = join(place.folder, 'anchors.jsonl')
    const verified = () =>
      command(place.vars, 'verify', '--anchor', anchors).catch((error: { code: number; stdout: string }) => error)
    try {
      const router = await serveRouter({ ...place.vars, ROUTER_ANCHOR_FILE: anchors })
      for (let round = 0; round < 3; round++)
        for (const tenant of TENANTS) expect((await call(router.origin, tenant)).status).toBe(200)
      await router.close()
      expect((await verified()).stdout).toContain('valid: 12 records')
      const [lost = ''] = await rows(place.stores.b, 'select tenant_id from traces order by 1')
      for (const table of ['traces', 'checkpoints'])
        await rows(place.stores.b, `delete from ${table} where tenant_id = '${lost}' and seq > 0`)
      const cut = await verified()
      expect(cut).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(new RegExp(`^${lost}: 1 record, BROKEN`, 'm')),
      })
      for (const tenant of TENANTS.filter(one => one !== lost))
        expect(cut.stdout).toMatch(new RegExp(`^${tenant}: 3 records, valid`, 'm'))
    } finally {
      await upstream.close()
      await rm(place.folder, { recursive: true, force: true })
    }
  }, 60_000)

  it('refuses what does not go together, in a sentence', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-router-shards-'))
    const vars = { ROUTER_BIND: '127.0.0.1:0', ROUTER_DIRECTORY_URL: join(folder, 'directory.db'), RUST_LOG: 'off' }
    try {
      await expect(serveRouter(vars)).rejects.toThrow('has no shard: add one')
      const empty = await command(vars, 'verify').catch((error: { code: number; stderr: string }) => error)
      expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('the directory of shards has none') })
      await expect(serveRouter({ ...vars, ROUTER_DB: join(folder, 'x.db') })).rejects.toThrow('leave ROUTER_DB out')
      const { serveConfigured } = await import('../../router/host/processes/serve-configured.ts')
      await expect(serveConfigured({ ...vars, ROUTER_PROCESSES: '2' })).rejects.toThrow(
        'over shards a router is one process',
      )
      await addShard(vars, { name: 'a', url: join(folder, 'a.db') })
      await setShardState(vars, 'a', 'closed')
      await expect(serveRouter(vars)).rejects.toThrow('No shard takes new tenants (default)')
      await expect(setShardState(vars, 'b', 'open')).rejects.toThrow('there is no shard b')
      await expect(addShard(vars, { name: 'No name', url: join(folder, 'b.db') })).rejects.toThrow(
        'is named with letters',
      )
      await expect(addShard(vars, { name: 'b', url: 'http://127.0.0.1:1/?authToken=t' })).rejects.toThrow(
        'set ROUTER_DB_TOKEN',
      )
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})
