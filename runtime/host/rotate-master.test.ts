import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { typed } from '../../shared/cli/testing/typed.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { writerName } from '../../shared/host/writer-name.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { grantingServer } from '../../tests/runtime/granting-server.ts'
import { runtimeProgram } from '../cli/commands.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { serveRuntime } from './node.ts'
import { rotateMaster } from './rotate-master.ts'
import { SEALED_COLUMNS } from './sealed-columns.ts'

const KEY = `wb_live_${'k'.repeat(43)}`
let folder: string
let vars: Record<string, string>
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-rotate-'))
  vars = {
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_DATA_DIR: folder,
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_LOG_LEVEL: 'off',
    PLATFORM_OUTBOUND_ALLOW: '127.0.0.1',
    PLATFORM_OAUTH_GITHUB_CLIENT_ID: 'id',
    PLATFORM_OAUTH_GITHUB_CLIENT_SECRET: 'secret',
  }
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A life of the service. */
async function during<T>(
  work: (call: (method: string, path: string, body?: object) => Promise<unknown>) => Promise<T>,
) {
  const service = await serveRuntime(vars)
  try {
    return await work(async (method, path, body) => {
      const answer = await fetch(service.origin + path, {
        method,
        redirect: 'manual',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text
    })
  } finally {
    await service.close()
  }
}

/** One of everything that is sealed; answers the run. */
const fill = () =>
  during(async call => {
    const provider = {
      provider: 'openai-compatible',
      apiKey: 'sk-x',
      baseUrl: 'http://127.0.0.1:9/',
      headers: { a: 'b' },
    }
    await call('POST', '/v1/settings/llm-providers', provider)
    await call('PUT', '/v1/secrets/TOKEN', { value: 'v' })
    await call('POST', '/v1/webhooks', { url: 'http://127.0.0.1:9/' })
    await call('POST', '/v1/connectors/oauth/start', { connectorId: 'github' })
    const granting = await grantingServer()
    const round = (await call('POST', '/v1/mcp-servers/oauth/start', { url: granting.url })) as { state: string }
    await call('GET', `/auth/connectors/callback?code=c&state=${round.state}`)
    await granting.close()
    const config = { secretKey: 'sk-vendor', baseUrl: 'http://127.0.0.1:9/' }
    await call('POST', '/v1/connectors/install', { connectorId: 'stripe', config })
    await call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
    const { id } = (await call('POST', '/v1/runs', { agentName: 'echo', input: { prompt: 'kept' } })) as Run
    await call('GET', `/v1/runs/${id}/events`)
    return id
  })

/** Everything that is sealed opens: what a run was given, its receipt, and a new run with the same signing key. */
const check = (id: string) =>
  during(async call => {
    expect(await call('GET', '/readyz')).toMatchObject({ checks: { masterKey: 'ok' } })
    expect(await call('GET', `/v1/runs/${id}`)).toMatchObject({ input: { prompt: 'kept' }, status: 'succeeded' })
    const receipt = (await call('GET', `/v1/runs/${id}/receipt`)) as { payload: { keyId: string } }
    expect(await call('POST', '/v1/runs/receipts/verify', receipt)).toMatchObject({ valid: true })
    const next = (await call('POST', '/v1/runs', { agentName: 'echo', input: {} })) as Run
    await call('GET', `/v1/runs/${next.id}/events`)
    const second = (await call('GET', `/v1/runs/${next.id}/receipt`)) as { payload: { keyId: string } }
    expect(second.payload.keyId).toBe(receipt.payload.keyId)
  })

async function idsOfKeys(): Promise<string[]> {
  const db = await openDb(join(folder, 'waybill.db'))
  const ids: string[] = []
  for (const { table, column, where = 'true' } of SEALED_COLUMNS) {
    const { rows } = await db.execute(`select ${column} from ${table} where ${column} is not null and ${where}`)
    expect(rows.length, `${table}.${column}`).toBeGreaterThan(0)
    ids.push(...rows.map(row => String(row[0]).split('.')[1]!))
  }
  db.close()
  return ids
}

describe('a new master key', () => {
  it('takes the place of the old one for everything that is sealed', async () => {
    const run = await fill()
    const before = new Set(await idsOfKeys())
    expect(before.size).toBe(1)
    const old = await readFile(join(folder, 'master.key'), 'utf8')
    const { wrapped, oldKeyFile } = await rotateMaster(vars, { to: undefined })
    expect(wrapped).toBe(SEALED_COLUMNS.length)
    const after = new Set(await idsOfKeys())
    expect([after.size, [...after].some(id => before.has(id))]).toEqual([1, false])
    expect(await readFile(join(folder, 'master.key'), 'utf8')).not.toBe(old)
    expect([oldKeyFile, await readFile(oldKeyFile!, 'utf8')]).toEqual([
      join(folder, `master.key.${[...before][0]}`),
      old,
    ])
    await check(run)
  })

  it('is completed by the next try when a rotation was killed on either side of its transaction', async () => {
    const run = await fill()
    const killed = () => {
      throw new Error('killed')
    }
    await expect(rotateMaster(vars, { to: undefined, onWrapped: killed })).rejects.toThrow('killed')
    // The store has moved, the key has not: the service refuses to start, and nothing is lost.
    await expect(serveRuntime(vars)).rejects.toThrow(/^the master key is not the one this store was sealed under/)
    expect((await rotateMaster(vars, { to: undefined })).wrapped).toBe(0)
    expect((await readdir(folder)).filter(name => name.startsWith('master.key'))).toHaveLength(2)
    await check(run)
    // Killed before the transaction: a new key lies there that nothing is sealed under yet, and it is the one that is taken.
    const next = Buffer.alloc(32, 5).toString('base64')
    await writeFile(join(folder, 'master.key.next'), next, { mode: 0o600 })
    await rotateMaster(vars, { to: undefined })
    expect(await readFile(join(folder, 'master.key'), 'utf8')).toBe(next)
    await check(run)
  })

  it('of the environment is given by a file', async () => {
    const run = await fill()
    const own = { ...vars, PLATFORM_MASTER_KEY_FILE: join(folder, 'master.key') }
    const to = join(folder, 'mine.key')
    await expect(rotateMaster(own, { to: undefined })).rejects.toThrow(/say with --to/)
    expect(await rotateMaster(own, { to })).toEqual({ wrapped: SEALED_COLUMNS.length, keyFile: to })
    vars = { ...vars, PLATFORM_MASTER_KEY_FILE: to }
    await check(run)
    await expect(rotateMaster(vars, { to })).rejects.toThrow(/in use already/)
  })

  it('is asked for at the terminal, which says where the keys are', async () => {
    await fill()
    const run = () => typed(runtimeProgram, ['keys', 'rotate-master'], { env: vars })
    const { code, out } = await run()
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^10 keys wrapped anew; the master key is now in .*master\.key; the old key is kept/),
    ])
    vars = { ...vars, PLATFORM_DATA_DIR: join(folder, 'nowhere') }
    const nowhere = await run()
    expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringMatching(/^there is no master key in /)])
  })
})

it('every column that holds sealed texts is known to the rotation', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  const { rows } = await db.execute(`select m.name as "table", p.name as "column" from sqlite_master m
    join pragma_table_info(m.name) p where m.type = 'table' and p.name like '%sealed%'`)
  // Says of a blob under which data key it is, and is not itself sealed.
  const found = rows
    .map(row => `${row.table}.${row.column}`)
    .filter(
      // The first says of a blob under which data key it is, the second is sealed to the key of a pool of nodes.
      name => name !== 'blobs.sealed' && name !== 'remote_runs.input_sealed',
    )
  const known = SEALED_COLUMNS.filter(({ table }) => table !== 'runtime_meta').map(one => `${one.table}.${one.column}`)
  expect(found.sort()).toEqual(known.sort())
  db.close()
})

describe('a rotation while a service runs', () => {
  it('is refused, in words that name the service, and changes nothing', async () => {
    await fill()
    const key = await readFile(join(folder, 'master.key'), 'utf8')
    await during(async call => {
      const { code, err } = await rotateByCommand()
      expect(code).toBe(1)
      expect(err).toMatch(
        new RegExp(
          `^a service of this store is running: process ${process.pid} on \\S+\\. Stop every service of the store, then rotate; the lease of a process that died ends by itself, at the latest at 20\\S+Z\\n$`,
        ),
      )
      await call('PUT', '/v1/secrets/LATER', { value: 'saved meanwhile' })
      expect(await call('GET', '/readyz')).toMatchObject({ checks: { masterKey: 'ok' } })
    })
    expect(await readFile(join(folder, 'master.key'), 'utf8')).toBe(key)
    expect((await rotateByCommand()).code).toBe(0)
    await during(call => call('GET', '/v1/secrets'))
  })

  it('lets no service start until it has ended', async () => {
    await fill()
    let refused: Promise<unknown> = Promise.resolve()
    const wrapped = rotateMaster(vars, {
      to: undefined,
      async onWrapped() {
        refused = serveRuntime(vars).catch((error: Error) => error.message)
        await refused
      },
    })
    await wrapped
    expect(await refused).toMatch(
      /^the master key of this store is being changed by .*: start again when that has ended/,
    )
    await during(call => call('GET', '/v1/secrets'))
  })

  it('waits for the lease of a process that died elsewhere, no longer, and not for one that died here', async () => {
    await fill()
    const db = await openDb(join(folder, 'waybill.db'))
    const put = (holder: string, untilMs: number) =>
      db.execute({
        sql: `insert into key_leases (holder, purpose, until_ms) values (?, 'serve', ?)`,
        args: [holder, untilMs],
      })
    // Its number is free: above what this kernel gives out.
    const here = writerName().split('/')
    await put([here[0], 2 ** 30, 'mark', 'x'].join('/'), Date.now() + 60_000)
    expect((await rotateByCommand()).code).toBe(0)
    await put('elsewhere pid:[1]/12/mark/x', Date.now() + 60_000)
    expect((await rotateByCommand()).err).toMatch(/process 12 on elsewhere\./)
    await db.execute('delete from key_leases')
    await put('elsewhere pid:[1]/12/mark/x', Date.now() - 1)
    expect((await rotateByCommand()).code).toBe(0)
    db.close()
  })
})

const rotateByCommand = () => typed(runtimeProgram, ['keys', 'rotate-master'], { env: vars })
