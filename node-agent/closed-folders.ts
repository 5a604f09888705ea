const BLOCK = 512
/** Longer than the path of any file. */
const MOST_NAME = 16 * BLOCK
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
  async function* open(tar: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let rest = Buffer.alloc(0)
    /** Bytes of an entry's content that still come. */
    let content = 0
    /** The name of the next entry, where it has one too long for its header. */
    let name = ''
    let isName = false
    let isOver = false
    for await (const chunk of tar) {
      rest = Buffer.concat([rest, chunk])
      const out: Buffer[] = []
      const take = (bytes: number) => {
        const taken = rest.subarray(0, bytes)
        rest = rest.subarray(bytes)
        out.push(taken)
        return taken
      }
      while (rest.length > 0) {
        if (isOver) take(rest.length)
        else if (content > 0) {
          const part = take(Math.min(content, rest.length))
          content -= part.length
          if (isName) name += part.toString('latin1')
        } else if (rest.length < BLOCK) break
        else {
          const header = take(BLOCK)
          isOver = header.every(byte => byte === 0)
          const type = String.fromCharCode(header[156]!)
          const mode = Number.parseInt(text(header, 100, 108), 8)
          if (type === '5' && (mode & WRITE_AND_ENTER) !== WRITE_AND_ENTER) {
            const path = text(Buffer.from(name, 'latin1')) || text(header, 0, 100)
            if (found.length < MOST_FOLDERS) found.push({ mode: mode.toString(8), path })
            out[out.length - 1] = withMode(header, mode | WRITE_AND_ENTER)
          }
          content = Math.ceil(sizeIn(header) / BLOCK) * BLOCK
          isName = type === 'L' && content <= MOST_NAME
          name = ''
        }
      }
      yield* out
    }
    if (rest.length > 0) yield rest
  }

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

function text(bytes: Buffer, start = 0, end = bytes.length): string {
  return bytes.toString('latin1', start, end).split('\0', 1)[0]!
}

/** Octal, or binary where the first bit says so. */
function sizeIn(header: Buffer): number {
  if ((header[124]! & 0x80) === 0) return Number.parseInt(text(header, 124, 136), 8) || 0
  return Number(header.readBigUInt64BE(128))
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
