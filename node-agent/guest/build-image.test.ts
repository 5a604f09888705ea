import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BROWSER } from '../../runtime/execution/browse/launch.ts'
import { hasBrowser, hasGuestInputs, hasInterpreters, testImageFolder } from '../isolation/testing/test-image.ts'
import { buildImage } from './build-image.ts'
import { cpioOf, type Member } from './cpio.ts'
import { INPUTS_FOLDER, readLock, readPackages, sha256Of } from './image-inputs.ts'
import { openImage } from './image-manifest.ts'
import { packageMembers } from './package-members.ts'

const here = hasGuestInputs()
const withInterpreters = here && hasInterpreters()
const withBrowser = here && hasBrowser()
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-image-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe.runIf(here)('the guest image', () => {
  it('is the same, byte for byte, when it is built again elsewhere and later', async () => {
    const [one, two] = [join(folder, 'one'), join(folder, 'deeper', 'two')]
    const first = await buildImage(INPUTS_FOLDER, one)
    const second = await buildImage(INPUTS_FOLDER, two)
    expect(second).toEqual(first)
    for (const file of ['initramfs', 'vmlinux', 'agent', 'manifest.json']) {
      expect((await readFile(join(one, file))).equals(await readFile(join(two, file)))).toBe(true)
    }
    const image = await openImage(one)
    expect(image).toMatchObject({ rootfs: join(one, 'rootfs'), digest: (await openImage(two))!.digest })
    expect((await stat(join(one, 'rootfs/work'))).mode & 0o7777).toBe(0o1777)
    expect(first.inputs.every(({ source }) => /^\S+ \S+$/.test(source))).toBe(true)
  })

  it.runIf(withInterpreters)(
    'is the same with interpreters too',
    async () => {
      // Other suites use the first; it was built elsewhere and earlier, in part by another process.
      const [one, two] = [await testImageFolder({ interpreters: true }), join(folder, 'interpreters')]
      const built = await buildImage(INPUTS_FOLDER, two, { interpreters: true })
      expect(built.programs).toEqual(['python3', 'node', 'pip', 'npm'])
      const authorities = await readlink(join(two, 'rootfs/usr/lib/ssl/cert.pem'))
      expect(await readFile(join(two, 'rootfs', authorities), 'latin1')).toContain('BEGIN CERTIFICATE')
      for (const file of ['initramfs', 'vmlinux', 'agent', 'manifest.json']) {
        expect((await readFile(join(one, file))).equals(await readFile(join(two, file))), file).toBe(true)
      }
      for (const file of [
        'usr/bin/node',
        'usr/bin/python3.11',
        'usr/local/bin/pip',
        'usr/local/bin/npm',
        'usr/lib/node_modules/npm/bin/npm-cli.js',
        'etc/ssl/certs/ca-certificates.crt',
      ]) {
        expect(
          (await readFile(join(one, 'rootfs', file))).equals(await readFile(join(two, 'rootfs', file))),
          file,
        ).toBe(true)
      }
    },
    120_000,
  )

  it.runIf(withBrowser)(
    'takes the same files from the packages of a browser each time, without those that nobody misses',
    async () => {
      const packages = [...(await readPackages(INPUTS_FOLDER, ['browser'])).values()]
      expect(packages.some(({ source }) => source.startsWith(`${BROWSER} `))).toBe(true)
      // Its program alone is more than half of them, and is one file.
      const others = packages.filter(({ source }) => !source.startsWith(`${BROWSER} `))
      const members = await packageMembers(others)
      expect(sha256Of(cpioOf(await packageMembers(others)))).toBe(sha256Of(cpioOf(members)))
      const names = members.map(({ path }) => path).filter(path => path.startsWith('usr/lib/chromium/'))
      expect(names).toContain('usr/lib/chromium/icudtl.dat')
      expect(names.filter(path => /crashpad|vulkan|resources/.test(path))).toEqual([])
    },
    120_000,
  )

  it('is not built from an input that is not the one that was pinned', async () => {
    const inputs = join(folder, 'changed')
    await cp(INPUTS_FOLDER, inputs, { recursive: true })
    const busybox = await readFile(join(inputs, 'busybox'))
    busybox[busybox.length - 1]! ^= 1
    await writeFile(join(inputs, 'busybox'), busybox)
    await expect(buildImage(inputs, join(folder, 'never'))).rejects.toThrow('busybox is not what the lock names')
    expect(await openImage(join(folder, 'never'))).toBeUndefined()
  })

  it('says how to get its inputs where there are none', async () => {
    await expect(buildImage(join(folder, 'nowhere'), join(folder, 'never'))).rejects.toThrow('setup-host.sh')
  })
})

it('a lock with a line that is none is refused', () => {
  expect(() => readLock(`${'a'.repeat(64)}  vmlinuz kernel 1.0\nnonsense\n`)).toThrow('nonsense')
})

describe('an archive for the kernel', () => {
  it.runIf(here)('unpacks with cpio to what went in', async () => {
    const into = join(folder, 'unpacked')
    execFileSync('mkdir', [into])
    const members: Member[] = [
      { path: 'sub', kind: 'folder', mode: 0o755 },
      { path: 'sub/file', kind: 'file', mode: 0o640, content: new TextEncoder().encode('content') },
      { path: 'link', kind: 'link', mode: 0o777, content: new TextEncoder().encode('sub/file') },
    ]
    execFileSync(join(INPUTS_FOLDER, 'busybox'), ['cpio', '-i'], { cwd: into, input: cpioOf(members), stdio: 'pipe' })
    expect(await readFile(join(into, 'link'), 'utf8')).toBe('content')
    expect((await stat(join(into, 'sub/file'))).mode & 0o777).toBe(0o640)
  })

  it('has the same bytes in whatever order its members came', () => {
    const member = fc.record({ path: fc.stringMatching(/^[a-z]{1,8}$/), content: fc.uint8Array({ maxLength: 40 }) })
    const members = fc.uniqueArray(member, { selector: ({ path }) => path, maxLength: 6 })
    fc.assert(
      fc.property(members, given => {
        const all = given.map(({ path, content }): Member => ({ path, kind: 'file', mode: 0o644, content }))
        const bytes = cpioOf(all)
        expect(cpioOf(all.toReversed())).toEqual(bytes)
        expect(bytes.length % 4).toBe(0)
      }),
    )
  })
})
