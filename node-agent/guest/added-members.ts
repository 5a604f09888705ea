import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Member } from './cpio.ts'
import { ImageInputError } from './image-inputs.ts'
import { folder } from './package-members.ts'

/** An archive for the kernel names each length in 32 bits, and a virtual machine holds all of it in memory twice. */
const MOST_BYTES = 1024 * 1024 * 1024
/** Of the image itself, or made by the kernel. */
const NOT_FOR_FILES = /^(init|sandbox-agent|modules|dev|proc|sys|tmp|work)(\/|$)/

/** The files of an operator's folder, as they stand in the image: owned by root, readable by all, without special rights. */
export async function addedMembers(from: string): Promise<Member[]> {
  const root = await stat(from).catch(() => undefined)
  if (!root?.isDirectory())
    throw new ImageInputError(`${from} is not a folder: --add takes one, whose files go into the image.`)
  let left = MOST_BYTES

  async function under(path: string): Promise<Member[]> {
    const found: Member[] = []
    const folderAt = join(from, path)
    for (const entry of await readdir(folderAt, { withFileTypes: true }).catch(unreadable(folderAt))) {
      const name = path === '' ? entry.name : `${path}/${entry.name}`
      const at = join(from, name)
      const refused = unreadable(at)
      if (NOT_FOR_FILES.test(name))
        throw new ImageInputError(`${at} cannot be added: /${name.split('/')[0]} is not for files of an image.`)
      if (entry.isDirectory()) {
        found.push(folder(name), ...(await under(name)))
      } else if (entry.isSymbolicLink()) {
        found.push({
          path: name,
          kind: 'link',
          mode: 0o777,
          content: new TextEncoder().encode(await readlink(at).catch(refused)),
        })
      } else if (entry.isFile()) {
        const { mode, size } = await stat(at).catch(refused)
        left -= size
        if (left < 0)
          throw new ImageInputError(`The files in ${from} are more than 1 GiB, which is the most that an image takes.`)
        found.push({
          path: name,
          kind: 'file',
          mode: mode & 0o111 ? 0o755 : 0o644,
          content: await readFile(at).catch(refused),
        })
      } else {
        throw new ImageInputError(`${at} cannot be added: only files, folders and links can.`)
      }
    }
    return found
  }

  return under('')
}

const unreadable = (at: string) => (cause: NodeJS.ErrnoException) => {
  const how = 'rename it, or give this account the right to read it'
  throw new ImageInputError(`${at} cannot be read (${cause.code}): ${how}.`, { cause })
}

/** Added files beside those of the image. Nothing of the image is replaced by one, and none is put behind a link. */
export function withAdded(image: readonly Member[], added: readonly Member[]): Member[] {
  const there = new Map(image.map(member => [member.path, member]))
  const fresh: Member[] = []
  for (const member of added) {
    const standing = there.get(member.path)
    if (standing?.kind === 'folder' && member.kind === 'folder') continue
    if (standing !== undefined)
      throw new ImageInputError(`/${member.path} is in the image already; --add replaces nothing.`)
    const parent = there.get(member.path.slice(0, Math.max(0, member.path.lastIndexOf('/'))))
    if (parent !== undefined && parent.kind !== 'folder') {
      throw new ImageInputError(
        `/${parent.path} is a ${parent.kind} in the image, and nothing can be put under it: use /usr/local.`,
      )
    }
    fresh.push(member)
  }
  return [...image, ...fresh]
}
