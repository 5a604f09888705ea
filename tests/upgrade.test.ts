import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createRouter } from '../router/router.ts'
import { routerSteps } from '../router/schema/steps.ts'
import { storedRecords } from '../router/traces/stored-records.ts'
import { verifyRecords } from '../router/traces/verify.ts'
import { runtimeSteps } from '../runtime/schema/steps.ts'
import { nativeSha256 } from '../shared/host/native-sha256.ts'
import { openDb } from '../shared/host/open-libsql.ts'
import type { Db } from '../shared/sql/db.ts'
import { type Migration, migrate } from '../shared/sql/migrate.ts'
import type { JournalExport } from '../shared/wire/runtime/journal.ts'
import type { Receipt } from '../shared/wire/runtime/receipt.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import { api } from './runtime/api.ts'
import { messagesAnswer } from './upstream/answers.ts'
import { answer, scriptedUpstream } from './upstream/scripted.ts'

/** The last steps of the version before this one. */
const RELEASED = { runtime: 14, router: 5 }
const masterKey = new Uint8Array(32).fill(9)

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-upgrade-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function tables(db: Db, of: string): Promise<Map<string, string[]>> {
  const { rows } = await db.execute(
    `select t.name, c.name from ${of}.sqlite_master t, pragma_table_info(t.name, '${of}') c
     where t.type = 'table' and t.name not like 'sqlite_%' and t.name <> 'schema_steps'`,
  )
  const found = new Map<string, string[]>()
  for (const row of rows) found.set(String(row[0]), [...(found.get(String(row[0])) ?? []), String(row[1])])
  return found
}

/** A store of the version before: its schema, and in it what a store of today has in the tables and columns that there were. */
async function asReleased(path: string, part: 'runtime' | 'router', steps: readonly Migration[]): Promise<string> {
  const old = join(folder, `${part}-released.db`)
  const made = await openDb(old)
  await migrate(
    made,
    part,
    steps.filter(({ id }) => id <= RELEASED[part]),
  )
  made.close()
  const db = await openDb(path)
  await db.execute({ sql: 'attach database ? as old', args: [old] })
  const now = await tables(db, 'main')
  for (const [name, columns] of await tables(db, 'old')) {
    const known = now.get(name)
    if (known === undefined)
      throw new Error(`the table ${name} of the released version is gone: what became of its rows?`)
    expect(known).toEqual(expect.arrayContaining(columns))
    await db.execute(`insert or replace into old.${name} (${columns}) select ${columns} from main.${name}`)
  }
  db.close()
  return old
}

async function stepsOf(path: string, part: string): Promise<number[]> {
  const db = await openDb(path, { readOnly: true })
  const { rows } = await db.execute({ sql: 'select id from schema_steps where part = ? order by id', args: [part] })
  db.close()
  return rows.map(row => Number(row[0]))
}

it('a store of the last version of the runtime opens, is brought up to date and keeps verifying', async () => {
  const path = join(folder, 'runtime.db')
  const before = await api({ url: path, masterKey })
  await before.json(201, 'POST', '/v1/agents', { name: 'clerk', manifest: { model: 'demo/echo', tools: ['wait'] } })
  await before.json(200, 'PUT', '/v1/agents/clerk/budget', { maxRunsPerDay: 10 })
  const ids: string[] = []
  for (let number = 0; number < 3; number++) {
    const input = { prompt: `/call wait {"seconds":0}\n${number}` }
    const { id } = await before.json<Run>(201, 'POST', '/v1/runs', { agentName: 'clerk', input })
    await (await before.events(`/v1/runs/${id}/events`)).all()
    ids.push(id)
  }
  const runs = await before.json<Run[]>(200, 'GET', '/v1/runs')
  await before.close()

  const old = await asReleased(path, 'runtime', runtimeSteps)
  expect(await stepsOf(old, 'runtime')).toEqual(Array.from({ length: RELEASED.runtime }, (_, at) => at + 1))
  const after = await api({ url: old, masterKey })
  expect(await after.json<Run[]>(200, 'GET', '/v1/runs')).toEqual(runs)
  for (const id of ids) {
    const receipt = await after.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
    const journal = await after.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
    expect(await after.json(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })).toMatchObject({
      ...{ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } },
    })
  }
  // And it goes on: what the days have used counts, and a new run ends.
  const { id } = await after.json<Run>(201, 'POST', '/v1/runs', { agentName: 'clerk', input: { prompt: 'hello' } })
  await (await after.events(`/v1/runs/${id}/events`)).all()
  expect(await after.json(200, 'GET', '/v1/agents/clerk/budget')).toMatchObject({ today: { runs: 4 } })
  await after.close()
  expect(await stepsOf(old, 'runtime')).toEqual(runtimeSteps.map(({ id }) => id))
})

it('a store of the last version of the router opens, is brought up to date and keeps verifying', async () => {
  const path = join(folder, 'router.db')
  const upstream = await scriptedUpstream()
  upstream.always(answer(200, JSON.stringify(messagesAnswer())))
  const env = { ROUTER_UPSTREAM_MESSAGES: upstream.origin }
  async function calls(file: string, count: number): Promise<void> {
    const db = await openDb(file)
    const router = createRouter({ db, env, sha256: nativeSha256 })
    await router.ready()
    const body = JSON.stringify({
      model: 'claude-haiku-4-5',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'hi' }],
    })
    for (let number = 0; number < count; number++) {
      const headers = { 'content-type': 'application/json', 'x-api-key': 'k' }
      const sent = await router.fetch(new Request('http://local/v1/messages', { method: 'POST', headers, body }))
      expect([sent.status, await sent.text()]).toEqual([200, expect.stringContaining('Hello.')])
    }
    await router.close()
    db.close()
  }
  await calls(path, 5)
  const old = await asReleased(path, 'router', routerSteps)
  expect(await stepsOf(old, 'router')).toEqual(Array.from({ length: RELEASED.router }, (_, at) => at + 1))
  await calls(old, 3)
  expect(await stepsOf(old, 'router')).toEqual(routerSteps.map(({ id }) => id))
  const db = await openDb(old, { readOnly: true })
  const report = await verifyRecords({ records: storedRecords(db), sha256: nativeSha256 })
  expect(report).toMatchObject({ valid: true, records: 8 })
  db.close()
  await upstream.close()
})

it('a store of a newer runtime is refused and left as it was', async () => {
  const path = join(folder, 'newer.db')
  const made = await api({ url: path, masterKey })
  await made.db.execute(
    "insert into schema_steps (part, id, name, checksum, applied_at) values ('runtime', 999, 'from-the-future', 'x', '2030-01-01')",
  )
  await made.close()
  await expect(api({ url: path, masterKey })).rejects.toThrow(
    /^The runtime database was made by a newer version \(step 999 "from-the-future"/,
  )
  expect((await stepsOf(path, 'runtime')).at(-1)).toBe(999)
})
