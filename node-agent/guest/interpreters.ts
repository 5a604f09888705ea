import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Member } from './cpio.ts'
import { ImageInputError, INTERPRETERS, type PinnedPackage } from './image-inputs.ts'

const run = promisify(execFile)

/** What no program reads. */
const LEFT_OUT =
  /^(usr\/share\/(doc|man|locale|info|lintian|bug|doc-base|pixmaps|applications)|var|etc\/(init\.d|apt|dpkg))(\/|$)/
const CERTIFICATES = 'usr/share/ca-certificates/mozilla/'

/** The files of the packages, unpacked and never configured: no script of theirs is run. */
export async function interpreterMembers(packages: readonly PinnedPackage[]): Promise<Member[]> {
  if (packages.length === 0) return []
  const tree = await mkdtemp(join(tmpdir(), 'waybill-root-'))
  try {
    for (const { path } of packages) await run('dpkg-deb', ['--extract', path, tree], { timeout: 60_000 })
    const members = await membersOf(tree, '')
    const names = new Set(members.map(({ path }) => path))
    for (const name of INTERPRETERS) {
      const program = `usr/bin/${name}`
      if (!names.has(program)) throw new ImageInputError(`The packages in the lock hold no ${program}.`)
    }
    const pip = [...names].find(path => /^usr\/share\/python-wheels\/pip-[^/]*\.whl$/.test(path))
    if (pip === undefined) throw new ImageInputError('The packages in the lock hold no wheel of pip.')
    const launcher = `#!/bin/sh\nexec python3 /${pip}/pip "$@"\n`
    const trusted = members
      .filter(({ path }) => path.startsWith(CERTIFICATES) && path.endsWith('.crt'))
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    const bundle = Buffer.concat(trusted.map(({ content }) => content!))
    return [
      ...members.filter(({ path }) => !path.startsWith(CERTIFICATES)),
      ...['etc/ssl', 'etc/ssl/certs'].filter(path => !names.has(path)).map(folder),
      ...['usr/local', 'usr/local/bin'].filter(path => !names.has(path)).map(folder),
      { path: 'usr/local/bin/pip', kind: 'file', mode: 0o755, content: new TextEncoder().encode(launcher) },
      { path: 'etc/ssl/certs/ca-certificates.crt', kind: 'file', mode: 0o644, content: bundle },
    ]
  } finally {
    await rm(tree, { recursive: true, force: true })
  }
}

const folder = (path: string): Member => ({ path, kind: 'folder', mode: 0o755 })

async function membersOf(tree: string, under: string): Promise<Member[]> {
  const found: Member[] = []
  for (const entry of await readdir(join(tree, under), { withFileTypes: true })) {
    const path = under === '' ? entry.name : `${under}/${entry.name}`
    if (LEFT_OUT.test(path)) continue
    const at = join(tree, path)
    if (entry.isSymbolicLink()) {
      found.push({ path, kind: 'link', mode: 0o777, content: new TextEncoder().encode(await readlink(at)) })
    } else if (entry.isDirectory()) {
      found.push(folder(path), ...(await membersOf(tree, path)))
    } else if (entry.isFile()) {
      // No program in a sandbox gains rights by its file.
      found.push({ path, kind: 'file', mode: (await stat(at)).mode & 0o755, content: await readFile(at) })
    }
  }
  return found
}

/** What the plain image has stays as it is there: its tools are links to one static program. */
export function withInterpreters(root: readonly Member[], extra: readonly Member[]): Member[] {
  const there = new Set(root.map(({ path }) => path))
  return [...root, ...extra.filter(({ path }) => !there.has(path))]
}

/** The clients of the step protocol, where each interpreter finds them. */
export async function clientMembers(): Promise<Member[]> {
  const client = (name: string) => readFile(new URL(`clients/${name}`, import.meta.url))
  return [
    ...['node_modules', 'node_modules/waybill', 'usr/lib', 'usr/lib/waybill'].map(folder),
    { path: 'node_modules/waybill/index.js', kind: 'file', mode: 0o644, content: await client('waybill.js') },
    { path: 'usr/lib/waybill/waybill.py', kind: 'file', mode: 0o644, content: await client('waybill.py') },
  ]
}
