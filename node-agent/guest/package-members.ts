import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import type { Member } from './cpio.ts'
import type { PinnedPackage } from './image-inputs.ts'

const run = promisify(execFile)

/** What no program reads. */
const LEFT_OUT =
  /^(usr\/share\/(doc|man|locale|info|lintian|bug|doc-base|pixmaps|applications)|var|etc\/(init\.d|apt|dpkg)|usr\/lib\/node_modules\/npm\/(docs|man))(\/|$)/
/** Of the browser: drawing on a graphics card, reporting crashes, and what a person in front of it would see. */
const LEFT_OUT_OF_BROWSER =
  /^usr\/lib\/chromium\/(chrome_crashpad_handler|libVk.*|libvk_.*|libvulkan.*|vk_swiftshader.*|libEGL.*|libGLES.*|resources\.pak|chrome_\d+_percent\.pak|.*\.TOC)$/
const CERTIFICATES = 'usr/share/ca-certificates/mozilla/'
const AUTHORITIES = 'etc/ssl/certs/ca-certificates.crt'

/** The files of the packages, unpacked and never configured: no script of theirs is run. */
export async function packageMembers(packages: readonly PinnedPackage[]): Promise<Member[]> {
  if (packages.length === 0) return []
  const tree = await mkdtemp(join(tmpdir(), 'waybill-root-'))
  try {
    for (const { path } of packages) await unpack(path, tree)
    const members = await membersOf(tree, '')
    const names = new Set(members.map(({ path }) => path))
    const trusted = members
      .filter(({ path }) => path.startsWith(CERTIFICATES) && path.endsWith('.crt'))
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    const bundle = Buffer.concat(trusted.map(({ content }) => content!))
    return [
      ...members.filter(({ path }) => !path.startsWith(CERTIFICATES)),
      ...['etc/ssl', 'etc/ssl/certs', 'usr/lib/ssl', 'usr/local', 'usr/local/bin']
        .filter(path => !names.has(path))
        .map(folder),
      { path: AUTHORITIES, kind: 'file', mode: 0o644, content: bundle },
      // Where Debian's OpenSSL looks, and with it Python and Node; the link is of a package that is left out.
      { path: 'usr/lib/ssl/cert.pem', kind: 'link', mode: 0o777, content: new TextEncoder().encode(`/${AUTHORITIES}`) },
    ]
  } finally {
    await rm(tree, { recursive: true, force: true })
  }
}

export const folder = (path: string): Member => ({ path, kind: 'folder', mode: 0o755 })

/** A package of Debian, or one of npm's registry, all of whose files are in one folder of its own. */
async function unpack(path: string, tree: string): Promise<void> {
  if (path.endsWith('.deb')) {
    await run('dpkg-deb', ['--extract', path, tree], { timeout: 60_000 })
    return
  }
  const into = join(tree, 'usr/lib/node_modules/npm')
  await makeFolder(into)
  await run('tar', ['-xzf', path, '-C', into, '--strip-components=1', '--no-same-owner'], { timeout: 60_000 })
}

async function membersOf(tree: string, under: string): Promise<Member[]> {
  const found: Member[] = []
  for (const entry of await readdir(join(tree, under), { withFileTypes: true })) {
    const path = under === '' ? entry.name : `${under}/${entry.name}`
    if (LEFT_OUT.test(path) || LEFT_OUT_OF_BROWSER.test(path)) continue
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
export function withPackages(root: readonly Member[], extra: readonly Member[]): Member[] {
  const there = new Set(root.map(({ path }) => path))
  return [...root, ...extra.filter(({ path }) => !there.has(path))]
}
