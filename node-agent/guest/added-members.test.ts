import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { addedMembers, withAdded } from './added-members.ts'
import { buildImage } from './build-image.ts'
import { cpioOf, type Member } from './cpio.ts'

let from: string
beforeEach(async () => {
  from = await mkdtemp(join(tmpdir(), 'waybill-added-'))
})
afterEach(() => rm(from, { recursive: true, force: true }))

const file = (path: string): Member => ({ path, kind: 'file', mode: 0o644, content: new Uint8Array() })
const folder = (path: string): Member => ({ path, kind: 'folder', mode: 0o755 })

it('takes files, folders and links, owned by root and without special rights', async () => {
  await mkdir(join(from, 'usr/local/bin'), { recursive: true, mode: 0o700 })
  await writeFile(join(from, 'usr/local/bin/tool'), 'x', { mode: 0o700 })
  await chmod(join(from, 'usr/local/bin/tool'), 0o4711)
  await writeFile(join(from, 'usr/local/note'), 'y', { mode: 0o600 })
  await symlink('/usr/local/bin/tool', join(from, 'usr/local/other'))
  const members = await addedMembers(from)
  expect(members.map(({ path, kind, mode }) => `${mode.toString(8)} ${kind} ${path}`).toSorted()).toEqual([
    '644 file usr/local/note',
    '755 file usr/local/bin/tool',
    '755 folder usr',
    '755 folder usr/local',
    '755 folder usr/local/bin',
    '777 link usr/local/other',
  ])
  await chmod(join(from, 'usr/local/note'), 0o644)
  expect(cpioOf(await addedMembers(from))).toEqual(cpioOf(members))
})

it.each(['init', 'modules', 'work', 'dev'])('puts nothing where the image has its own: /%s', async name => {
  await mkdir(join(from, name))
  await expect(addedMembers(from)).rejects.toThrow(`/${name} is not for files of an image`)
})

it('refuses a socket, a file as its folder, and a folder that is not there', async () => {
  await writeFile(join(from, 'file'), '')
  await expect(addedMembers(join(from, 'file'))).rejects.toThrow('--add takes one')
  const server = createServer().listen(join(from, 'socket'))
  await once(server, 'listening')
  await expect(addedMembers(from)).rejects.toThrow('socket cannot be added: only files, folders and links can')
  server.close()
  await expect(addedMembers(join(from, 'none'))).rejects.toThrow('is not a folder')
})

it('names what cannot be read, as a name that is no text', async () => {
  await writeFile(Buffer.concat([Buffer.from(`${from}/a`), Buffer.from([0xff])]), '')
  await expect(addedMembers(from)).rejects.toThrow(/cannot be read \(ENOENT\): rename it, or give this account/)
})

it('refuses a folder that the image would be written into', async () => {
  const refused = expect(buildImage(from, join(from, 'images/data'), { added: from })).rejects
  await refused.toThrow('would then be part of itself')
})

it('replaces nothing of the image and puts nothing behind its links', () => {
  const link: Member = { path: 'lib', kind: 'link', mode: 0o777, content: new TextEncoder().encode('opt/lib') }
  const image = [folder('usr'), file('usr/passwd'), link]
  expect(withAdded(image, [folder('usr'), folder('usr/local'), file('usr/local/x')])).toHaveLength(5)
  expect(() => withAdded(image, [folder('usr'), file('usr/passwd')])).toThrow('--add replaces nothing')
  expect(() => withAdded(image, [folder('lib'), file('lib/x.so')])).toThrow('/lib is in the image already')
  expect(() => withAdded(image, [file('lib/x.so')])).toThrow('/lib is a link in the image')
})
