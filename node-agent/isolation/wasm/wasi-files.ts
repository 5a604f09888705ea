import { Directory, type Fd, File, OpenFile, PreopenDirectory, wasi } from '@bjorn3/browser_wasi_shim'
import type { ChangedFiles } from './messages.ts'
import { LimitMet, MAX_FILES, MAX_PATH_CHARACTERS } from './workspace-limits.ts'

/** The calls of the interface, by name. Their numbers are pointers, lengths and descriptors, 64-bit ones as bigint. */
export type WasiCalls = Record<string, (...values: (number | bigint)[]) => number>

/**
 * `/work` of one WASI program, in memory. The library keeps the tree and answers the calls; what is added here is the limit of
 * bytes, room to grow in without copying a file at each write, and the knowledge of what has changed.
 */
export function wasiFiles(maxBytes: number, fds: readonly (Fd | undefined)[]) {
  const root = new PreopenDirectory('/work', new Map())
  /** As the node knows them. */
  let known = new Map<string, { file: File; data: Uint8Array }>()
  const written = new Set<File>()
  let taken = 0

  function* allFiles(): Generator<[string, File]> {
    let found = 0
    for (const one of filesBelow(root.dir)) {
      if (++found > MAX_FILES) throw new LimitMet('disk')
      yield one
    }
  }

  /** Files that are open count as well, whether or not a name leads to them. */
  function count(): number {
    const files = new Set([...allFiles()].map(([, file]) => file))
    for (const fd of fds) if (fd instanceof OpenFile) files.add(fd.file)
    return [...files].reduce((sum, file) => sum + file.data.length, 0)
  }

  /** Makes the file as long as `end` where it is shorter; false where the workspace has no room for that. */
  function grow(file: File, end: bigint): boolean {
    const more = Number(end) - file.data.length
    if (more <= 0) return true
    if (taken + more > maxBytes) taken = count()
    if (taken + more > maxBytes) return false
    taken += more
    const length = Number(end)
    if (length <= file.data.buffer.byteLength - file.data.byteOffset) {
      const longer = new Uint8Array(file.data.buffer, file.data.byteOffset, length)
      longer.fill(0, file.data.length)
      file.data = longer
      return true
    }
    const room = new Uint8Array(Math.min(Math.max(length, 2 * file.data.length), length + maxBytes))
    room.set(file.data)
    file.data = room.subarray(0, length)
    return true
  }

  function put(path: string, content: Uint8Array | null): void {
    const names = path.split('/')
    const last = names.pop()!
    let folder = root.dir
    for (const name of names) {
      let next = folder.contents.get(name)
      if (!(next instanceof Directory)) {
        if (content === null) return
        next = new Directory(new Map())
        folder.contents.set(name, next)
      }
      folder = next as Directory
    }
    if (content === null) {
      folder.contents.delete(last)
      known.delete(path)
      return
    }
    const there = folder.contents.get(last)
    const file = there instanceof File ? there : new File([])
    // A copy: what crossed between processes may lie in memory that it shares.
    file.data = new Uint8Array(content)
    folder.contents.set(last, file)
    known.set(path, { file, data: file.data })
  }

  return {
    root,
    grow,
    /** That the program has just changed it. */
    noteWritten: (file: File) => void written.add(file),
    put(changed: ChangedFiles): void {
      for (const [path, content] of changed) put(path, content)
      taken = count()
    },
    /** What the program changed since this was last asked; throws for more than the node would hold. */
    taken(): ChangedFiles {
      const now = new Map([...allFiles()].map(([path, file]) => [path, { file, data: file.data }]))
      const changed: ChangedFiles = []
      for (const path of known.keys()) if (!now.has(path)) changed.push([path, null])
      for (const [path, { file, data }] of now) {
        const before = known.get(path)
        if (before?.file !== file || before.data !== data || written.has(file)) changed.push([path, data.slice()])
      }
      written.clear()
      known = now
      return changed
    },
  }
}

/** Each file with its path. */
function* filesBelow(folder: Directory, prefix = ''): Generator<[string, File]> {
  for (const [name, entry] of folder.contents) {
    if (prefix.length + name.length > MAX_PATH_CHARACTERS) throw new LimitMet('disk')
    if (entry instanceof Directory) yield* filesBelow(entry, `${prefix}${name}/`)
    else if (entry instanceof File) yield [prefix + name, entry]
  }
}

/** The calls that make files longer, each asked for room first. */
export function boundedCalls(
  calls: WasiCalls,
  fds: readonly (Fd | undefined)[],
  { grow, noteWritten }: Pick<ReturnType<typeof wasiFiles>, 'grow' | 'noteWritten'>,
  memory: () => WebAssembly.Memory,
): WasiCalls {
  const requested = (iovs: bigint, count: bigint): bigint => {
    const list = wasi.Ciovec.read_bytes_array(new DataView(memory().buffer), Number(iovs), Number(count))
    return BigInt(list.reduce((sum, { buf_len }) => sum + buf_len, 0))
  }
  const asked =
    (
      name: string,
      places: readonly number[],
      end: (open: OpenFile, values: readonly bigint[]) => bigint,
    ): WasiCalls[string] =>
    (...values) => {
      const open = fds[Number(values[0])]
      if (open instanceof OpenFile) {
        // Unsigned to the program, and signed as it comes here: as such it would be a length from the end.
        if (places.some(at => values[at]! < 0)) return wasi.ERRNO_INVAL
        if (!grow(open.file, end(open, values.map(BigInt)))) return wasi.ERRNO_NOSPC
        noteWritten(open.file)
      }
      return calls[name]!(...values)
    }
  return {
    ...calls,
    fd_write: asked('fd_write', [], (open, [, iovs, count]) => open.file_pos + requested(iovs!, count!)),
    fd_pwrite: asked('fd_pwrite', [3], (_open, [, iovs, count, offset]) => offset! + requested(iovs!, count!)),
    fd_allocate: asked('fd_allocate', [1, 2], (_open, [, offset, length]) => offset! + length!),
    fd_filestat_set_size: asked('fd_filestat_set_size', [1], (_open, [, size]) => size!),
  }
}
