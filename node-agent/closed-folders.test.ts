import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { closedFolders } from './closed-folders.ts'

async function through(tar: Buffer, sizes: readonly number[]) {
  async function* pieces() {
    for (let at = 0, i = 0; at < tar.length; i++) {
      const end = at + (sizes[i % sizes.length] ?? tar.length)
      yield tar.subarray(at, end)
      at = end
    }
  }
  const folders = closedFolders()
  const out: Uint8Array[] = []
  for await (const piece of folders.open(pieces())) out.push(piece)
  const open = Buffer.concat(out)
  return { open, modes: folders.modes().toString('latin1') }
}

const listed = (tar: Buffer) =>
  execFileSync('tar', ['-tvf', '-'], { input: tar, encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(line => `${line.slice(0, 10)} ${line.split(' ').at(-1)}`)

it('opens closed folders, and says their modes, wherever the archive is cut', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-closed-'))
  const long = 'n'.repeat(120)
  try {
    mkdirSync(join(folder, 'mod', long), { recursive: true })
    writeFileSync(join(folder, 'mod', long, 'x'), 'x'.repeat(1500))
    for (const path of [join('mod', long), 'mod']) chmodSync(join(folder, path), 0o555)
    const tar = execFileSync('tar', ['--format=gnu', '-cf', '-', '-C', folder, 'mod'])
    const whole = await through(tar, [])
    expect(whole.modes).toBe(`555\0mod/${long}/\x00555\0mod/\0`)
    expect(listed(whole.open)).toEqual(['drwxr-xr-x mod/', `drwxr-xr-x mod/${long}/`, `-rw-r--r-- mod/${long}/x`])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 5 }), async sizes => {
        expect(await through(tar, sizes)).toEqual(whole)
      }),
      { numRuns: 30 },
    )
    chmodSync(join(folder, 'mod'), 0o755)
    chmodSync(join(folder, 'mod', long), 0o755)
    const open = execFileSync('tar', ['--format=gnu', '-cf', '-', '-C', folder, 'mod'])
    expect(await through(open, [700])).toEqual({ open, modes: '' })
  } finally {
    execFileSync('chmod', ['-R', 'u+w', folder])
    rmSync(folder, { recursive: true, force: true })
  }
})
