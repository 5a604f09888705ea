import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { EnvError } from '../../shared/env/read-env.ts'
import { readIdentity } from './identity.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-identity-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const key = Buffer.alloc(32, 7).toString('base64')
const whole = {
  version: 1,
  nodeId: 'n',
  tenantId: 't',
  pool: 'p',
  signSeed: key,
  boxKey: key,
  poolPublic: key,
  poolPrivate: key,
}

it('is not there before the node is enrolled', async () => {
  expect(await readIdentity(join(folder, 'node.json'))).toBeUndefined()
})

it.each([
  ['empty', ''],
  ['cut off', JSON.stringify(whole).slice(0, 150)],
  ['of another shape', '[]'],
  ['with a key that is too short', JSON.stringify({ ...whole, signSeed: 'AAAA' })],
])('a file that is %s is named, with what to do, and none of its keys', async (_, text) => {
  const path = join(folder, 'node.json')
  await writeFile(path, text)
  const refused = await readIdentity(path).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(EnvError)
  expect((refused as Error).message).toBe(
    `${path} is not the identity of a node: restore it, or move it away and enrol a new node`,
  )
  expect(String((refused as Error).cause)).toBe('undefined')
  await writeFile(path, JSON.stringify(whole))
  expect(await readIdentity(path)).toMatchObject({ nodeId: 'n', pool: 'p' })
})
