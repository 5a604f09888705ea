import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { BROWSER } from '../../runtime/execution/browse/launch.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { addedMembers, withAdded } from './added-members.ts'
import { cpioOf, type Member } from './cpio.ts'
import {
  type Addition,
  ImageInputError,
  INTERPRETERS,
  MODULES,
  readInputs,
  readPackages,
  sha256Of,
} from './image-inputs.ts'
import { type ImageManifest, imageManifest } from './image-manifest.ts'
import { folder, packageMembers, withPackages } from './package-members.ts'

const run = promisify(execFile)

const AGENT_SOURCE = new URL('agent.c', import.meta.url)

/**
 * Builds the guest image into a folder: the agent, a root for containers, and kernel and first file system for virtual
 * machines. Only pinned inputs go in, and the same inputs give the same bytes. The folder appears whole or not at all.
 */
export async function buildImage(
  inputsFolder: string,
  into: string,
  { interpreters = false, browser = false, added }: { interpreters?: boolean; browser?: boolean; added?: string } = {},
): Promise<ImageManifest> {
  if (added !== undefined && !relative(resolve(added), resolve(into)).startsWith('..')) {
    throw new ImageInputError(
      `${into} lies in ${added}, whose files are to be added: the image would then be part of itself.`,
    )
  }
  const inputs = await readInputs(inputsFolder)
  const input = (name: string) => inputs.get(name)!.content
  await makeFolder(dirname(into))
  const scratch = await mkdtemp(join(dirname(into), '.image-'))
  try {
    const agent = await compileAgent(join(scratch, 'agent'))
    const applets = await appletsOf(join(inputsFolder, 'busybox'))
    const vmlinux = await kernelOf(input('vmlinuz'))
    const additions: Addition[] = [
      ...(interpreters ? ['interpreters' as const] : []),
      ...(browser ? ['browser' as const] : []),
    ]
    const packages = await readPackages(inputsFolder, additions)
    const unpacked = await packageMembers([...packages.values()])
    const extra = interpreters ? [...unpacked, ...installerMembers(unpacked)] : unpacked
    if (browser && !extra.some(({ path }) => path === `usr/bin/${BROWSER}`)) {
      throw new ImageInputError(`The packages in the lock hold no usr/bin/${BROWSER}.`)
    }
    const root = [
      ...rootMembers(input('busybox'), applets),
      ...(additions.length > 0 ? [] : OPERATORS_LIBRARIES),
      ...(await clientMembers()),
    ]
    const own = added === undefined ? [] : await addedMembers(added)
    const files = withAdded(withPackages(root, extra), own)
    const initramfs = cpioOf([
      ...files,
      { path: 'init', kind: 'file', mode: 0o755, content: agent },
      { path: 'dev/console', kind: 'character-device', mode: 0o600, device: [5, 1] },
      { path: 'modules', kind: 'folder', mode: 0o755 },
      { path: 'modules/order', kind: 'file', mode: 0o644, content: text(`${MODULES.map(ko).join('\n')}\n`) },
      ...MODULES.map(
        (name): Member => ({ path: `modules/${ko(name)}`, kind: 'file', mode: 0o644, content: input(ko(name)) }),
      ),
    ])
    await writeFile(join(scratch, 'vmlinux'), vmlinux)
    await writeFile(join(scratch, 'initramfs'), initramfs)
    await writeRoot(join(scratch, 'rootfs'), [
      ...files,
      { path: 'sandbox-agent', kind: 'file', mode: 0o755, content: agent },
    ])
    const manifest = imageManifest.parse({
      version: 1,
      inputs: [
        ...[...inputs, ...packages].map(([name, { sha256, source }]) => ({ name, sha256, source })),
        ...(added === undefined
          ? []
          : [{ name: 'added', sha256: sha256Of(cpioOf(own)), source: 'files of the operator' }]),
      ],
      programs: [...(interpreters ? [...INTERPRETERS, 'pip', 'npm'] : []), ...(browser ? [BROWSER] : [])],
      rootMb: Math.ceil([...extra, ...own].reduce((sum, { content }) => sum + (content?.length ?? 0), 0) / 1_048_576),
      outputs: {
        agent: sha256Of(agent),
        vmlinux: sha256Of(vmlinux),
        initramfs: sha256Of(initramfs),
        root: sha256Of(cpioOf(files)),
      },
    })
    await writeFile(join(scratch, 'manifest.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
    // A container's root user is an unprivileged user here, and must still be able to walk to its root.
    await chmod(scratch, 0o755)
    await replaceFolder(scratch, into, JSON.stringify(manifest))
    return manifest
  } catch (error) {
    await rm(scratch, { recursive: true, force: true })
    throw error
  }
}

/**
 * An equal image that stands there stays, as sandboxes may be running from it. For the same reason another one is put aside, until the next one is
 * built.
 */
async function replaceFolder(built: string, into: string, manifest: string): Promise<void> {
  const standing = await readFile(join(into, 'manifest.json'), 'utf8').catch(() => undefined)
  if (standing !== undefined && JSON.stringify(readJson(standing)) === manifest) {
    await rm(built, { recursive: true })
    return
  }
  const before = join(dirname(into), `.${basename(into)}-before`)
  await rm(before, { recursive: true, force: true })
  await rename(into, before).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  await rename(built, into)
}

const ko = (module: string) => `${module}.ko`
const text = (content: string) => new TextEncoder().encode(content)

/** Programs of the operator find their loader and libraries where they stand among them; interpreters bring a loader and libraries of their own. */
const OPERATORS_LIBRARIES = ['lib', 'lib64'].map(
  (path): Member => ({ path, kind: 'link', mode: 0o777, content: text(`opt/${path}`) }),
)

/** Folders, tools and the few files that programs look for; the same in a container and in a machine. */
function rootMembers(busybox: Uint8Array, applets: readonly string[]): Member[] {
  const folders = ['bin', 'dev', 'etc', 'opt', 'proc', 'sbin', 'sys', 'usr', 'usr/bin', 'usr/sbin']
  return [
    // runc gives a tmpfs the mode of the folder that it covers, whatever its options say.
    ...['tmp', 'work'].map((path): Member => ({ path, kind: 'folder', mode: 0o1777 })),
    ...folders.map((path): Member => ({ path, kind: 'folder', mode: 0o755 })),
    { path: 'bin/busybox', kind: 'file', mode: 0o755, content: busybox },
    ...applets.map((name): Member => ({ path: `bin/${name}`, kind: 'link', mode: 0o777, content: text('busybox') })),
    {
      path: 'etc/passwd',
      kind: 'file',
      mode: 0o644,
      content: text('root:x:0:0:root:/:/bin/sh\nsandbox:x:1000:1000:sandbox:/work:/bin/sh\n'),
    },
    { path: 'etc/group', kind: 'file', mode: 0o644, content: text('root:x:0:\nsandbox:x:1000:\n') },
    { path: 'etc/hosts', kind: 'file', mode: 0o644, content: text('127.0.0.1 localhost\n') },
  ]
}

async function writeRoot(root: string, members: readonly Member[]): Promise<void> {
  await mkdir(root, { mode: 0o755 })
  for (const { path, kind, mode, content } of members.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const at = join(root, path)
    if (kind === 'folder') await mkdir(at, { mode })
    else if (kind === 'link') await symlink(new TextDecoder().decode(content), at)
    else await writeFile(at, content!, { mode })
    if (kind !== 'link') await chmod(at, mode)
  }
}

/** Without a build id and with its paths mapped away, the same compiler gives the same bytes. */
async function compileAgent(to: string): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-agent-'))
  try {
    await writeFile(join(folder, 'agent.c'), await readFile(AGENT_SOURCE))
    const flags = ['-O2', '-static', '-s', '-Wall', '-Wl,--build-id=none', `-ffile-prefix-map=${folder}=.`]
    await run('gcc', [...flags, '-o', to, join(folder, 'agent.c')], { timeout: 60_000 })
  } catch (cause) {
    throw new ImageInputError('The guest agent does not compile: is gcc with a static C library installed?', { cause })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return readFile(to)
}

/** Its own name is among them, and a link of that name would replace the program by a link to itself. */
async function appletsOf(busybox: string): Promise<string[]> {
  const { stdout } = await run(busybox, ['--list'], { timeout: 10_000 })
  return stdout
    .split('\n')
    .filter(name => /^[a-z0-9[\]_-]+$/.test(name) && name !== 'busybox')
    .toSorted()
}

/** The ELF image inside a bzImage (x86 boot protocol: offset at 0x248, length at 0x24c), which QEMU starts directly. */
async function kernelOf(bzImage: Uint8Array): Promise<Uint8Array> {
  const view = new DataView(bzImage.buffer, bzImage.byteOffset, bzImage.byteLength)
  const sectors = view.getUint8(0x1f1) || 4
  const from = (sectors + 1) * 512 + view.getUint32(0x248, true)
  const packed = bzImage.subarray(from, from + view.getUint32(0x24c, true))
  const magic = new DataView(packed.buffer, packed.byteOffset, 4).getUint32(0, true)
  if (magic !== 0x184c2102)
    throw new ImageInputError('The kernel is not packed with LZ4, which is all that is read here.')
  const folder = await mkdtemp(join(tmpdir(), 'waybill-kernel-'))
  try {
    // The last four bytes are the length of what was packed, behind the stream.
    await writeFile(join(folder, 'packed'), packed.subarray(0, -4))
    await run('lz4', ['-d', '-f', '-q', join(folder, 'packed'), join(folder, 'vmlinux')], { timeout: 60_000 })
    return await readFile(join(folder, 'vmlinux'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const NPM = 'usr/lib/node_modules/npm/bin/npm-cli.js'

/** What installs packages for the interpreters, as programs: their packages are unpacked and not installed. */
function installerMembers(members: readonly Member[]): Member[] {
  const names = new Set(members.map(({ path }) => path))
  for (const name of INTERPRETERS) {
    const program = `usr/bin/${name}`
    if (!names.has(program)) throw new ImageInputError(`The packages in the lock hold no ${program}.`)
  }
  const pip = [...names].find(path => /^usr\/share\/python-wheels\/pip-[^/]*\.whl$/.test(path))
  if (pip === undefined) throw new ImageInputError('The packages in the lock hold no wheel of pip.')
  if (!names.has(NPM)) {
    throw new ImageInputError('The packages in the lock hold no npm: run "bash scripts/setup-host.sh" to fetch it.')
  }
  const launcher = (name: string, line: string): Member => ({
    path: `usr/local/bin/${name}`,
    kind: 'file',
    mode: 0o755,
    content: new TextEncoder().encode(`#!/bin/sh\nexec ${line} "$@"\n`),
  })
  return [launcher('pip', `python3 /${pip}/pip`), launcher('npm', `node /${NPM}`)]
}

/** The clients of the step protocol, where each interpreter finds them. */
async function clientMembers(): Promise<Member[]> {
  const client = (name: string) => readFile(new URL(`clients/${name}`, import.meta.url))
  return [
    ...['node_modules', 'node_modules/waybill', 'usr/lib', 'usr/lib/waybill'].map(folder),
    { path: 'node_modules/waybill/index.js', kind: 'file', mode: 0o644, content: await client('waybill.js') },
    { path: 'usr/lib/waybill/waybill.py', kind: 'file', mode: 0o644, content: await client('waybill.py') },
  ]
}
