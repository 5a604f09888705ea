import { copyFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { atTerminal, type TerminalFixture, terminalFixture } from './testing/terminal-fixture.ts'

let fixture: TerminalFixture
beforeEach(async () => {
  fixture = await terminalFixture()
})
afterEach(() => fixture.close())

async function ran(prompt: string): Promise<string> {
  const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'echo', input: { prompt } })
  await fixture.call('GET', `/v1/runs/${id}/events`)
  return id
}

it('a store that was copied without its -wal while runs were under way is named by the doctor, as at the start', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  await ran('hello')
  await fixture.stop()
  const file = join(fixture.vars.PLATFORM_DATA_DIR, 'waybill.db')
  const store = async () => {
    const said = await fixture.run('doctor', '--json')
    return (JSON.parse(said.out) as { about: string; is: string; says: string }[]).find(one => one.about === 'store')
  }
  expect(await store()).toMatchObject({ is: 'ok' })
  const db = await openDb(file)
  await db.execute("update runs set owner = 'another machine:1'")
  await db.execute('pragma wal_checkpoint(truncate)')
  await db.close()
  for (const end of ['-wal', '-shm']) await rm(file + end, { force: true })
  const lost = {
    is: 'warn',
    says: expect.stringMatching(/^runs were under way \(1\), and there is no .*waybill\.db-wal/),
  }
  expect(await store()).toMatchObject(lost)
})

it('a backup of a running service, restored elsewhere, has every run with a receipt that verifies', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const ids: string[] = []
  for (let at = 0; at < 20; at++) ids.push(await ran(`run ${at}`))
  const file = join(fixture.folder, 'backup.db')
  // While runs are being made.
  const [said] = await Promise.all([fixture.run('backup', file), ...ids.map(id => ran(`beside ${id}`))])
  expect([said?.code, said?.out]).toEqual([0, expect.stringMatching(/ \d+ bytes; the master key is not in it\n$/)])
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await fixture.run('backup', file)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/there already/),
  })

  await fixture.stop()
  const data = fixture.vars.PLATFORM_DATA_DIR
  expect(await fixture.run('restore', file)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/is there already/),
  })
  await rename(data, join(fixture.folder, 'lost'))
  await mkdir(data)
  const keyless = await fixture.run('restore', file)
  expect([keyless.code, keyless.err]).toEqual([
    1,
    expect.stringMatching(/its master key is not part of a backup; put it at/),
  ])
  // What was half restored is not left behind.
  expect(await readdir(data)).toEqual([])
  await copyFile(join(fixture.folder, 'lost', 'master.key'), join(data, 'master.key'))
  const restored = await fixture.run('restore', file)
  const [, held, all] = /restored; (\d+) of (\d+) receipts hold/.exec(restored.out) ?? []
  expect([restored.code, restored.err, held]).toEqual([0, '', all])
  expect(Number(all)).toBeGreaterThanOrEqual(20)
  expect((await readdir(data)).sort()).toEqual(['master.key', 'waybill.db'])

  await fixture.again()
  for (const id of ids) {
    const run = await fixture.call<Run>('GET', `/v1/runs/${id}`)
    expect(run.input).toEqual({ prompt: `run ${ids.indexOf(id)}` })
    const receipt = await fixture.call<Receipt>('GET', `/v1/runs/${id}/receipt`)
    expect(await fixture.call('POST', '/v1/runs/receipts/verify', receipt)).toMatchObject({
      valid: true,
      checks: { signature: 'ok', journal: 'ok', record: 'ok' },
    })
  }
  // And goes on.
  await ran('after')
})

it('a restore says from when it is and what goes on from there, and --hold sets that aside', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'waiter', manifest: { model: 'demo/echo', tools: ['wait'] } })
  const prompt = '/call wait {"seconds":4}'
  const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'waiter', input: { prompt } })
  const get = () => fixture.call<Run>('GET', `/v1/runs/${id}`)
  await expect.poll(async () => (await get()).parked?.reason).toBe('timer')
  const { updatedAt } = await get()
  const file = join(fixture.folder, 'backup.db')
  await fixture.run('backup', file)
  await fixture.stop()
  const place = join(fixture.vars.PLATFORM_DATA_DIR, 'waybill.db')
  const restore = async (...more: string[]) => {
    for (const end of ['', '-wal', '-shm']) await rm(place + end, { force: true })
    return (await fixture.run('restore', file, ...more)).out.split('\n').slice(1, -1)
  }
  const last = `its last change is of ${updatedAt}; what came later is not in it`
  expect(await restore()).toEqual([last, expect.stringMatching(/^1 run under way: at the next start .* paid again/)])
  expect(await restore('--hold')).toEqual([last, '1 run set aside, to be resumed or cancelled'])
  await fixture.again()
  await wait(5000)
  expect(await get()).toMatchObject({ status: 'waiting', parked: { reason: 'poisoned' } })
  await fixture.call('POST', `/v1/runs/${id}/signals/resume`)
  await expect.poll(async () => (await get()).status, { timeout: 10_000 }).toBe('succeeded')
}, 30_000)

it('a backup that was tampered with is not restored, and says which run it is', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const ids = [await ran('one'), await ran('two')]
  const file = join(fixture.folder, 'backup.db')
  await fixture.run('backup', file)
  await fixture.stop()
  const db = await openDb(file)
  await db.execute({ sql: 'update runs set tokens_out = tokens_out + 1 where id = ?', args: [ids[1] ?? ''] })
  await db.execute('pragma wal_checkpoint(truncate)')
  db.close()
  const env = {
    PLATFORM_DATA_DIR: join(fixture.folder, 'other'),
    PLATFORM_MASTER_KEY_FILE: join(fixture.vars.PLATFORM_DATA_DIR, 'master.key'),
  }
  const said = await atTerminal(['restore', file], env)
  expect([said.code, said.out, said.err]).toEqual([
    ...[1, '', expect.stringMatching(new RegExp(`^run ${ids[1]}: record_mismatch\nnothing was restored`))],
  ])
  expect(await readdir(env.PLATFORM_DATA_DIR)).toEqual([])
  const forced = await atTerminal(['restore', file, '--force'], env)
  expect([forced.code, forced.out]).toEqual([
    0,
    expect.stringMatching(/^restored; 1 of 2 receipts hold\nits last change is of \S+Z; what/),
  ])
})

it('a restore that is forced counts every receipt that does not hold, and the runs that have none', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const ids: string[] = []
  for (let at = 0; at < 25; at++) ids.push(await ran(`run ${at}`))
  const file = join(fixture.folder, 'backup.db')
  await fixture.run('backup', file)
  await fixture.stop()
  const db = await openDb(file)
  await db.execute('update runs set tokens_out = tokens_out + 1')
  await db.execute({ sql: 'delete from receipts where run_id in (?, ?)', args: ids.slice(0, 2) })
  await db.execute('pragma wal_checkpoint(truncate)')
  db.close()
  const env = {
    PLATFORM_DATA_DIR: join(fixture.folder, 'other'),
    PLATFORM_MASTER_KEY_FILE: join(fixture.vars.PLATFORM_DATA_DIR, 'master.key'),
  }
  const forced = await atTerminal(['restore', file, '--force'], env)
  expect([forced.code, forced.out]).toEqual([
    ...[0, expect.stringMatching(/^restored; 0 of 23 receipts hold; 2 runs that ended have none\n/)],
  ])
})

it('a receipt in the place of another run’s is neither handed out nor taken for one that holds', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const [one, two] = [await ran('one'), await ran('two')]
  await fixture.call('DELETE', `/v1/runs/${one}`)
  const db = await openDb(join(fixture.vars.PLATFORM_DATA_DIR, 'waybill.db'))
  await db.execute({
    sql: 'update receipts set envelope = (select envelope from receipts where run_id = ?) where run_id = ?',
    args: [two, one],
  })
  db.close()
  await expect(fixture.call('GET', `/v1/runs/${one}/receipt`)).rejects.toThrow('the receipt of run')
  const file = join(fixture.folder, 'backup.db')
  await fixture.run('backup', file)
  const env = {
    PLATFORM_DATA_DIR: join(fixture.folder, 'other'),
    PLATFORM_MASTER_KEY_FILE: join(fixture.vars.PLATFORM_DATA_DIR, 'master.key'),
  }
  const said = await atTerminal(['restore', file], env)
  expect([said.code, said.err]).toEqual([
    1,
    expect.stringMatching(new RegExp(`^run ${one}: the receipt of run ${one}`)),
  ])
})

it('what is no backup is not restored', async () => {
  await fixture.stop()
  const file = join(fixture.folder, 'x.db')
  const env = { PLATFORM_DATA_DIR: join(fixture.folder, 'other') }
  expect((await atTerminal(['restore', file], env)).code).toBe(3)
  await writeFile(file, 'not a database, but long enough to be looked at'.repeat(100))
  expect((await atTerminal(['restore', file], env)).code).toBe(3)
  const live = join(fixture.folder, 'live.db')
  await copyFile(join(fixture.vars.PLATFORM_DATA_DIR, 'waybill.db'), live)
  await writeFile(`${live}-wal`, await readFile(live))
  const said = await atTerminal(['restore', live], env)
  expect([said.code, said.err]).toEqual([1, expect.stringMatching(/belongs to a store in use/)])
  await writeFile(file, '')
  const none = await atTerminal(['restore', file], env)
  expect([none.code, none.err]).toEqual([1, expect.stringMatching(/is no backup of a runtime/)])
  expect(await readdir(env.PLATFORM_DATA_DIR)).toEqual([])
})

it('a backup that was cut off, or has a hole where no receipt is, is not restored', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  await ran('one')
  const file = join(fixture.folder, 'backup.db')
  await fixture.run('backup', file)
  const whole = await readFile(file)
  const db = await openDb(file)
  const { rows } = await db.execute("select rootpage from sqlite_master where name = 'schedules'")
  db.close()
  const page = whole.readUInt16BE(16)
  const hole = Number(rows[0]?.rootpage) * page
  const env = {
    PLATFORM_DATA_DIR: join(fixture.folder, 'other'),
    PLATFORM_MASTER_KEY_FILE: join(fixture.vars.PLATFORM_DATA_DIR, 'master.key'),
  }
  for (const damaged of [whole.subarray(0, whole.length / 2), Buffer.from(whole).fill(0, hole - page, hole)]) {
    await writeFile(file, damaged)
    const said = await atTerminal(['restore', file], env)
    expect([said.out, said.code === 0]).toEqual(['', false])
    expect(await readdir(env.PLATFORM_DATA_DIR)).toEqual([])
  }
})

it('an index that lost a run is found by doctor, and written again by a restore', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const id = await ran('one')
  await fixture.stop()
  const store = join(fixture.vars.PLATFORM_DATA_DIR, 'waybill.db')
  const db = await openDb(store)
  const { rows } = await db.execute("select rootpage from sqlite_master where name = 'sqlite_autoindex_runs_1'")
  await db.execute('pragma wal_checkpoint(truncate)')
  db.close()
  const bytes = await readFile(store)
  const page = bytes.readUInt16BE(16)
  const at = bytes.indexOf(id, (Number(rows[0]?.rootpage) - 1) * page)
  bytes.write('f', at + id.length - 1)
  bytes.write('f', at + id.length - 2)
  await writeFile(store, bytes)
  const doctor = await fixture.run('doctor')
  expect([doctor.code, doctor.out]).toEqual([
    1,
    expect.stringMatching(/fail\s+store .*missing from index.*restore that/),
  ])
  const file = join(fixture.folder, 'backup.db')
  expect(await fixture.run('backup', file)).toMatchObject({ code: 0 })
  for (const end of ['', '-wal', '-shm']) await rm(store + end, { force: true })
  const restored = await fixture.run('restore', file)
  expect([restored.code, restored.out]).toEqual([0, expect.stringMatching(/^restored; 1 of 1 receipts hold/)])
  await fixture.again()
  expect(await fixture.call<Run>('GET', `/v1/runs/${id}`)).toMatchObject({ status: 'succeeded' })
})
