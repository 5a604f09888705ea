import { joined } from '../../shared/sign/bytes.ts'

/** A member of an archive. A folder has no content, a link has its target as content. */
export interface Member {
  path: string
  kind: 'file' | 'folder' | 'link' | 'character-device'
  mode: number
  content?: Uint8Array
  /** Of a device. */
  device?: readonly [major: number, minor: number]
}

const FORMAT = { file: 0o100000, folder: 0o040000, link: 0o120000, 'character-device': 0o020000 } as const

/**
 * An archive in the `newc` form that the kernel unpacks as its first file system. Owner, times and inode numbers depend
 * on the members alone, so the same members give the same bytes on every machine.
 */
export function cpioOf(members: readonly Member[]): Uint8Array {
  const sorted = members.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const parts: Uint8Array[] = []
  for (const [index, member] of sorted.entries()) parts.push(...entry(member, index + 1))
  parts.push(...entry({ path: 'TRAILER!!!', kind: 'file', mode: 0 }, 0))
  return joined(parts)
}

const encoder = new TextEncoder()

function* entry({ path, kind, mode, content = new Uint8Array(), device = [0, 0] }: Member, inode: number) {
  const name = encoder.encode(`${path}\0`)
  const fields = [
    inode,
    path === 'TRAILER!!!' ? 0 : FORMAT[kind] | mode,
    0, // owner
    0, // group
    1, // links
    0, // time
    content.length,
    0, // device of the file system
    0,
    device[0],
    device[1],
    name.length,
    0, // checksum, unused in this form
  ]
  const header = `070701${fields.map(field => field.toString(16).padStart(8, '0')).join('')}`
  yield encoder.encode(header)
  yield name
  yield new Uint8Array(padding(header.length + name.length))
  yield content
  yield new Uint8Array(padding(content.length))
}

const padding = (length: number) => (4 - (length % 4)) % 4
