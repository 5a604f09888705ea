import { copyFile, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { BackupCommand, RestoreCommand } from './backup.ts'
import { atTerminal, type TerminalRoom, terminalRoom } from './testing/terminal-fixture.ts'

let room: TerminalRoom
beforeEach(async () => {
  room = await terminalRoom()
})
afterEach(() => room.close())

async function ran(prompt: string): Promise<string> {
  const { id } = await room.call<Run>('POST', '/v1/runs', { agentName: 'echo', input: { prompt } })
  await room.call('GET', `/v1/runs/${id}/events`)
  return id
}

it('a backup of a running service, restored elsewhere, has every run with a receipt that verifies', async () => {
  await room.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const ids: string[] = []
  for (let at = 0; at < 20; at++) ids.push(await ran(`run ${at}`))
  const file = join(room.folder, 'backup.db')
  // While runs are being made.
  const [said] = await Promise.all([room.run(BackupCommand, 'backup', file), ...ids.map(id => ran(`beside ${id}`))])
  expect([said?.code, said?.out]).toEqual([0, expect.stringMatching(/ \d+ bytes; the master key is not in it\n$/)])
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await room.run(BackupCommand, 'backup', file)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/there already/),
  })

  await room.stop()
  const data = room.vars.PLATFORM_DATA_DIR
  expect(await room.run(RestoreCommand, 'restore', file)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/is there already/),
  })
  await rename(data, join(room.folder, 'lost'))
  await mkdir(data)
  const keyless = await room.run(RestoreCommand, 'restore', file)
  expect([keyless.code, keyless.err]).toEqual([
    1,
    expect.stringMatching(/its master key is not part of a backup; put it at/),
  ])
  // What was half restored is not left behind.
  expect(await readdir(data)).toEqual([])
  await copyFile(join(room.folder, 'lost', 'master.key'), join(data, 'master.key'))
  const restored = await room.run(RestoreCommand, 'restore', file)
  const [, held, all] = /restored; (\d+) of (\d+) receipts hold/.exec(restored.out) ?? []
  expect([restored.code, restored.err, held]).toEqual([0, '', all])
  expect(Number(all)).toBeGreaterThanOrEqual(20)
  expect((await readdir(data)).sort()).toEqual(['master.key', 'waybill.db'])

  await room.again()
  for (const id of ids) {
    const run = await room.call<Run>('GET', `/v1/runs/${id}`)
    expect(run.input).toEqual({ prompt: `run ${ids.indexOf(id)}` })
    const receipt = await room.call<Receipt>('GET', `/v1/runs/${id}/receipt`)
    expect(await room.call('POST', '/v1/runs/receipts/verify', receipt)).toMatchObject({
      ...{ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } },
    })
  }
  // And goes on.
  await ran('after')
})

it('a backup that was tampered with is not restored, and says which run it is', async () => {
  await room.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const ids = [await ran('one'), await ran('two')]
  const file = join(room.folder, 'backup.db')
  await room.run(BackupCommand, 'backup', file)
  await room.stop()
  const db = await openDb(file)
  await db.execute({ sql: 'update runs set tokens_out = tokens_out + 1 where id = ?', args: [ids[1] ?? ''] })
  await db.execute('pragma wal_checkpoint(truncate)')
  db.close()
  const env = {
    PLATFORM_DATA_DIR: join(room.folder, 'other'),
    PLATFORM_MASTER_KEY_FILE: join(room.vars.PLATFORM_DATA_DIR, 'master.key'),
  }
  const said = await atTerminal(RestoreCommand, ['restore', file], env)
  expect([said.code, said.out, said.err]).toEqual([
    ...[1, '', expect.stringMatching(new RegExp(`^run ${ids[1]}: record_mismatch\nnothing was restored`))],
  ])
  expect(await readdir(env.PLATFORM_DATA_DIR)).toEqual([])
  const forced = await atTerminal(RestoreCommand, ['restore', file, '--force'], env)
  expect([forced.code, forced.out]).toEqual([0, 'restored; 1 of 2 receipts hold\n'])
})

it('what is no backup is not restored', async () => {
  await room.stop()
  const file = join(room.folder, 'x.db')
  const env = { PLATFORM_DATA_DIR: join(room.folder, 'other') }
  expect((await atTerminal(RestoreCommand, ['restore', file], env)).code).toBe(1)
  await writeFile(file, 'not a database, but long enough to be looked at'.repeat(100))
  expect((await atTerminal(RestoreCommand, ['restore', file], env)).code).toBe(1)
  const live = join(room.folder, 'live.db')
  await copyFile(join(room.vars.PLATFORM_DATA_DIR, 'waybill.db'), live)
  await writeFile(`${live}-wal`, await readFile(live))
  const said = await atTerminal(RestoreCommand, ['restore', live], env)
  expect([said.code, said.err]).toEqual([1, expect.stringMatching(/belongs to a store in use/)])
})
