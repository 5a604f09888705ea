import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { sqldAvailable, startSqld } from '../../tests/backends/sqld.ts'
import { examine } from '../host/examine.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { atTerminal, terminalFixture } from './testing/terminal-fixture.ts'

let folder: string
let vars: Record<string, string>
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-doctor-'))
  await chmod(folder, 0o700)
  vars = { PLATFORM_DATA_DIR: folder, PLATFORM_URL: 'http://127.0.0.1:9' }
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const of = async (about: string, more: Record<string, string> = {}) =>
  (await examine({ ...vars, ...more })).find(one => one.about === about)

it('finds nothing wrong before the first start, and leaves nothing behind', async () => {
  const said = await atTerminal(['doctor'], vars)
  expect([said.code, said.err]).toEqual([0, ''])
  expect(said.out.split('\n').map(line => line.slice(0, 18).trim())).toEqual([
    ...['ok    node', 'ok    settings', 'ok    data folder', 'ok    store', 'ok    master key', 'ok    models'],
    ...['ok    address', 'ok    service', ''],
  ])
  expect(await readdir(folder)).toEqual([])
})

it('warns of a store that is empty beside the master key of an earlier start', async () => {
  await writeFile(join(folder, 'master.key'), Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 })
  const lost = { is: 'warn', says: expect.stringContaining('put the store and its -wal back before the next start') }
  expect(await of('store')).toMatchObject(lost)
  await writeFile(join(folder, 'waybill.db'), '')
  expect(await of('store')).toMatchObject(lost)
})

it('finds a service that is ready, and the store and the key that it uses', async () => {
  const fixture = await terminalFixture()
  const found = await examine(fixture.env())
  expect(found.map(({ is }) => is).filter(is => is === 'fail')).toEqual([])
  expect(found.find(({ about }) => about === 'service')?.says).toMatch(/^ready at /)
  expect(found.find(({ about }) => about === 'master key')?.says).toBe('opens what the store has sealed')
  expect(found.find(({ about }) => about === 'store')?.says).toMatch(/^step \d+$/)
  await fixture.stop()
  await writeFile(join(fixture.vars.PLATFORM_DATA_DIR, 'master.key'), Buffer.alloc(32, 1).toString('base64'))
  const other = await atTerminal(['doctor', '--json'], fixture.env())
  expect(other.code).toBe(1)
  expect(JSON.parse(other.out)).toContainEqual({
    about: 'master key',
    is: 'fail',
    says: expect.stringMatching(/^the master key is not the one/),
  })
  // What ends a start comes before what only has to be mended.
  await chmod(join(fixture.vars.PLATFORM_DATA_DIR, 'master.key'), 0o644)
  expect((await examine(fixture.env())).find(({ about }) => about === 'master key')).toMatchObject({
    is: 'fail',
    says: expect.stringMatching(/^the master key is not the one/),
  })
  await rm(join(fixture.vars.PLATFORM_DATA_DIR, 'master.key'))
  expect((await examine(fixture.env())).find(({ about }) => about === 'master key')).toMatchObject({ is: 'fail' })
  expect(await readdir(fixture.vars.PLATFORM_DATA_DIR)).not.toContain('master.key')
  await fixture.close()
})

it('says what is wrong, and what to do', async () => {
  expect(await of('settings', { PLATFORM_LEASE_TTL: 'soon' })).toMatchObject({
    is: 'fail',
    says: expect.stringContaining('PLATFORM_LEASE_TTL: expected a duration'),
  })
  expect(await of('settings', { PLATFORM_WARM_POOL: '65' })).toMatchObject({ is: 'fail' })
  expect(await of('settings', { PLATFORM_BINDD: 'x' })).toMatchObject({
    is: 'warn',
    says: expect.stringContaining('did you mean PLATFORM_BIND?'),
  })
  expect(await of('settings', { PLATFORM_SHARDS: 'a,b' })).toMatchObject({
    is: 'fail',
    says: 'PLATFORM_SHARDS names shards, and there is no directory of them: set PLATFORM_DIRECTORY_URL, or leave PLATFORM_SHARDS out',
  })
  expect(await of('data folder', { PLATFORM_DATA_DIR: '/proc/none/data' })).toMatchObject({
    is: 'fail',
    says: expect.stringMatching(/^nothing can be made in \/proc \(E[A-Z]+\): set PLATFORM_DATA_DIR/),
  })
  expect(await of('data folder', { PLATFORM_DATA_DIR: join(folder, 'later', 'data') })).toMatchObject({ is: 'ok' })
  expect(await readdir(folder)).toEqual([])
  expect(await of('address', { PLATFORM_BIND: '0.0.0.0:8080' })).toMatchObject({
    is: 'warn',
    says: expect.stringContaining('PLATFORM_PUBLIC_URL'),
  })
  expect(await of('models', { PLATFORM_DEMO: 'off' })).toMatchObject({ is: 'warn' })
  expect(await of('models', { PLATFORM_PROVIDER_ANTHROPIC_API_KEY: 'sk-x' })).toMatchObject({
    says: expect.stringContaining('anthropic'),
  })
  await chmod(folder, 0o755)
  expect(await of('data folder')).toMatchObject({ is: 'warn', says: expect.stringContaining('chmod 700') })
  await writeFile(join(folder, 'master.key'), 'hunter2', { mode: 0o600 })
  expect(await of('master key')).toMatchObject({ is: 'fail', says: expect.stringContaining('32 bytes') })
  await writeFile(join(folder, 'waybill.db'), 'no database at all, but a text that is long enough'.repeat(50))
  expect(await of('store')).toMatchObject({ is: 'fail' })
  await rm(join(folder, 'waybill.db'))
  const db = await openDb(join(folder, 'waybill.db'))
  await db.client.executeMultiple(`create table schema_steps (part text, id integer);
    insert into schema_steps values ('runtime', 999);`)
  db.close()
  expect(await of('store')).toMatchObject({ is: 'fail', says: expect.stringContaining('newer version') })
})

it('says of a store that another build made what a start would say', async () => {
  const db = await openDb(join(folder, 'waybill.db'))
  await migrate(db, 'runtime', runtimeSteps)
  await db.execute("update schema_steps set checksum = 'other'")
  expect(await of('store')).toMatchObject({
    is: 'fail',
    says: expect.stringMatching(/another build .*Use that build/s),
  })
  await db.execute("update schema_steps set id = 27, name = 'people' where id = 100")
  expect(await of('store')).toMatchObject({ is: 'fail', says: expect.stringContaining('before this program') })
  db.close()
})

if (await sqldAvailable()) {
  it('says of a libSQL server whether it takes writes, and what a commit means there', async () => {
    const server = await startSqld()
    const more = { PLATFORM_DATABASE_URL: server.primaryUrl }
    expect(await of('writes', more)).toMatchObject({ is: 'ok' })
    expect(await of('durability', more)).toMatchObject({
      is: 'warn',
      says: expect.stringContaining('durability_mode to strong'),
    })
    expect(await of('clock', more)).toMatchObject({ is: 'ok' })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 })
    expect(await of('clock', more)).toMatchObject({ is: 'fail', says: expect.stringMatching(/^(59|60) s ahead of/) })
    vi.useRealTimers()
    await server.down()
    expect(await of('writes', more)).toMatchObject({
      is: 'fail',
      says: expect.stringContaining('Cannot reach a libSQL server'),
    })
    await server.stop()
  })
}
