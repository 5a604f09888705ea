import { tarEntries, text } from './tar-entries.ts'

/** Of those that are closed again; folders beyond stay open to their owner. Who made the workspace is not trusted with this memory. */
const MOST_FOLDERS = 32_768
/** To make a file in a folder, its owner needs both. */
const WRITE_AND_ENTER = 0o300

/**
 * Folders that their owner cannot write to, as Go's module cache makes them. Without the rights of root, the tar of the guest
 * image fails at the first file in one: it gives a folder its mode at once.
 */
export function closedFolders() {
  const found: { mode: string; path: string }[] = []

  /** The archive with these folders open. */
  const open = (tar: AsyncIterable<Uint8Array>) =>
    tarEntries(tar, ({ header, type, path }) => {
      const mode = Number.parseInt(text(header, 100, 108), 8)
      if (type !== '5' || (mode & WRITE_AND_ENTER) === WRITE_AND_ENTER) return undefined
      if (found.length < MOST_FOLDERS) found.push({ mode: mode.toString(8), path })
      return withMode(header, mode | WRITE_AND_ENTER)
    })

  return {
    open,
    /** Mode and path of each in turn, what is within a folder before it. */
    modes: () =>
      Buffer.from(
        found
          .reverse()
          .map(({ mode, path }) => `${mode}\0${path}\0`)
          .join(''),
        'latin1',
      ),
  }
}

/** The checksum counts its own eight bytes as blanks. */
function withMode(header: Buffer, mode: number): Buffer {
  const changed = Buffer.from(header)
  changed.write(`${mode.toString(8).padStart(7, '0')}\0`, 100, 'latin1')
  changed.fill(' ', 148, 156)
  const sum = changed.reduce((total, byte) => total + byte, 0)
  changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return changed
}
