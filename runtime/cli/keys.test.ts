import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { typed } from '../../shared/cli/testing/typed.ts'
import { serveRuntime } from '../host/node.ts'
import { runtimeProgram } from './commands.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-keys-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const run = (...args: string[]) => typed(runtimeProgram, ['keys', ...args], { env: { PLATFORM_DATA_DIR: folder } })

it('makes a key for a runtime that is running, lists it, and revokes it', async () => {
  const service = await serveRuntime({
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_DATA_DIR: folder,
    PLATFORM_LOG_LEVEL: 'off',
  })
  const made = await run('create', '--name', 'ci', '--scope', 'agents:read')
  const key = made.out.trim()
  expect([made.code, key]).toEqual([0, expect.stringMatching(/^wb_live_[\w-]{43}$/)])
  const read = () => fetch(`${service.origin}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })
  expect((await read()).status).toBe(200)
  const listed = await run('list')
  expect(listed.out).toMatch(new RegExp(`\n[0-9a-f-]{36}  ${key.slice(0, 12)}…  active  agents:read  \\S+Z  ci\n$`))
  expect((await run('revoke', /^[0-9a-f-]{36}/m.exec(listed.out)![0])).code).toBe(0)
  expect((await run('list')).out).toContain('  revoked  ')
  const reader = (await run('create', '--name', 'audit', '--scope', 'read')).out.trim()
  const log = await fetch(`${service.origin}/v1/audit-log`, { headers: { authorization: `Bearer ${reader}` } })
  expect(await log.json()).toMatchObject(
    ['createApiKey', 'revokeApiKey', 'createApiKey'].map(action => ({ action, actor: 'command line', via: 'cli' })),
  )
  await service.close()
})

it('creates no store by looking for one', async () => {
  for (const args of [['list'], ['revoke', 'x']]) {
    expect(await run(...args)).toEqual({
      code: 3,
      out: '',
      err: `There is no store at ${join(folder, 'waybill.db')}: name its folder in PLATFORM_DATA_DIR, or start a service there first.\n`,
    })
  }
  expect(await readdir(folder)).toEqual([])
})

it('says in one line what is wrong', async () => {
  expect((await run('create', '--name', 'first')).code).toBe(0)
  expect(await run('revoke', 'nothing')).toMatchObject({
    code: 1,
    err: 'there is no API key and no signing key with the id nothing\n',
  })
  expect(await run('create', '--name', 'x', '--tenant', 'ghost')).toMatchObject({
    code: 1,
    err: 'there is no tenant with the id ghost\n',
  })
  expect((await run('create', '--name', 'x', '--scope', 'all')).err).toMatch(/unknown scope 'all'/)
  expect((await run('create', '--name', 'x', '--expires', 'soon')).err).toMatch(/--expires: expected/)
  expect((await run('create', '--name', 'x', '--expires', '2099-02-30')).err).toMatch(/--expires: expected/)
})
