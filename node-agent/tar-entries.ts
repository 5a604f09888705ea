const BLOCK = 512
/** Longer than the path of any file. */
const MOST_NAME = 16 * BLOCK

export interface TarEntry {
  header: Buffer
  /** `5` is a folder; `0`, `7` and NUL are files. */
  type: string
  path: string
  bytes: number
}

/** An archive as it is read, piece by piece. `seen` may give another header for an entry. */
export async function* tarEntries(
  tar: AsyncIterable<Uint8Array>,
  seen: (entry: TarEntry) => Buffer | undefined,
): AsyncGenerator<Uint8Array> {
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
        const bytes = sizeIn(header)
        const path = text(Buffer.from(name, 'latin1')) || text(header, 0, 100)
        const other = seen({ header, type, path, bytes })
        if (other) out[out.length - 1] = other
        content = Math.ceil(bytes / BLOCK) * BLOCK
        isName = type === 'L' && content <= MOST_NAME
        name = ''
      }
    }
    yield* out
  }
  if (rest.length > 0) yield rest
}

export function text(bytes: Buffer, start = 0, end = bytes.length): string {
  return bytes.toString('latin1', start, end).split('\0', 1)[0]!
}

/** Octal, or binary where the first bit says so. */
function sizeIn(header: Buffer): number {
  if ((header[124]! & 0x80) === 0) return Number.parseInt(text(header, 124, 136), 8) || 0
  return Number(header.readBigUInt64BE(128))
}
