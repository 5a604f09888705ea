import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { withBlock, withoutBlock } from '../onboard/marked-block.ts'
import { readStartUpFile, replaceStartUpFile } from './start-up-file.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-start-up-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function put(path: string) {
  const file = await readStartUpFile(path)
  await replaceStartUpFile(file, withBlock(file.text, ['export A=1'], file.missingFolders))
}
async function take(path: string) {
  const file = await readStartUpFile(path)
  const { text, newFolders } = withoutBlock(file.text ?? '')
  await replaceStartUpFile(file, text, newFolders)
}

describe('a start-up file', () => {
  it('has the same bytes, mode, owner and neighbours after our lines came and went', async () => {
    const path = join(folder, 'rc')
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 64 }),
        fc.constantFrom(0o600, 0o644, 0o755, 0o4755),
        async (bytes, mode) => {
          await writeFile(path, bytes)
          await chmod(path, mode)
          const before = await stat(path)
          await put(path)
          expect(await readFile(path, 'latin1')).toContain('export A=1')
          expect((await stat(path)).mode).toBe(before.mode)
          await take(path)
          const after = await stat(path)
          expect(new Uint8Array(await readFile(path))).toEqual(bytes)
          expect([after.mode, after.uid, after.gid]).toEqual([before.mode, before.uid, before.gid])
          expect(await readdir(folder)).toEqual(['rc'])
        },
      ),
      { numRuns: 100 },
    )
  })

  it('that was not there is gone again, with the folders that came with it', async () => {
    const path = join(folder, 'a', 'b', 'config.fish')
    await put(path)
    expect((await stat(path)).mode & 0o777).toBe(0o666 & ~process.umask())
    await take(path)
    expect(await readdir(folder)).toEqual([])
  })

  it('stays when somebody wrote into it, and so does a folder that somebody uses', async () => {
    const path = join(folder, 'a', 'b', 'config.fish')
    await put(path)
    await writeFile(join(folder, 'a', 'other'), '')
    await take(path)
    expect(await readdir(join(folder, 'a'))).toEqual(['other'])
    await put(path)
    await writeFile(path, (await readFile(path, 'utf8')) + 'mine\n')
    await take(path)
    expect(await readFile(path, 'utf8')).toBe('mine\n')
  })

  it('behind links is changed where it is, and the links stay', async () => {
    const real = join(folder, 'dotfiles', 'bashrc')
    await mkdir(dirname(real))
    await writeFile(real, 'mine')
    await symlink('dotfiles/bashrc', join(folder, 'middle'))
    await symlink(join(folder, 'middle'), join(folder, 'rc'))
    await put(join(folder, 'rc'))
    expect(await readFile(real, 'utf8')).toContain('export A=1')
    expect([await readlink(join(folder, 'rc')), (await lstat(join(folder, 'middle'))).isSymbolicLink()]).toEqual([
      join(folder, 'middle'),
      true,
    ])
    await take(join(folder, 'rc'))
    expect(await readFile(real, 'utf8')).toBe('mine')
    // A link to a file that is not there yet.
    await symlink('dotfiles/zshrc', join(folder, 'later'))
    await put(join(folder, 'later'))
    expect(await readdir(join(folder, 'dotfiles'))).toEqual(['bashrc', 'zshrc'])
    await take(join(folder, 'later'))
    expect([await readdir(join(folder, 'dotfiles')), await readlink(join(folder, 'later'))]).toEqual([
      ['bashrc'],
      'dotfiles/zshrc',
    ])
  })

  it('is left alone when it cannot be replaced faithfully', async () => {
    const path = join(folder, 'rc')
    await writeFile(path, 'mine')
    const read = await readStartUpFile(path)
    await writeFile(path, 'theirs')
    await expect(replaceStartUpFile(read, 'ours')).rejects.toThrow('changed by someone else')
    expect(await readFile(path, 'utf8')).toBe('theirs')
    await chmod(path, 0o444)
    await expect(put(path)).rejects.toThrow('write-protected')
    await chmod(path, 0o644)
    await link(path, join(folder, 'twin'))
    await expect(put(path)).rejects.toThrow('several names')
    await symlink('b', join(folder, 'a'))
    await symlink('a', join(folder, 'b'))
    await expect(put(join(folder, 'a'))).rejects.toThrow('in a circle')
    await mkdir(join(folder, 'directory'))
    await expect(put(join(folder, 'directory'))).rejects.toThrow('cannot be read')
    expect((await readdir(folder)).sort()).toEqual(['a', 'b', 'directory', 'rc', 'twin'])
  })
})
