import { posix } from 'node:path'
import { z } from 'zod'
import { readJson } from '../../../shared/json/read-json.ts'
import { type FileEntry, IsolationError } from '../driver.ts'
import { inWorkspace } from '../sandbox-files.ts'
import type { ChangedFiles } from './messages.ts'
import { MAX_FILES, MAX_PATH_CHARACTERS } from './workspace-limits.ts'

const packedIndex = z.array(z.tuple([z.string(), z.number()]))

/** A path that is a name already, found without taking it apart: a program may have thousands of long ones. */
const PLAIN = /^(?!\.{0,2}(?:\/|$))[^/\0]+(?:\/(?!\.{0,2}(?:\/|$))[^/\0]+)*$/

/** The files of a sandbox that has no file system: names in the workspace, and bytes up to a limit. */
export function memoryWorkspace(maxBytes: number) {
  const files = new Map<string, Uint8Array>()
  const nameOf = (path: string) => (PLAIN.test(path) ? path : posix.relative('/work', inWorkspace(path)))
  let taken = 0

  function write(path: string, content: Uint8Array): string {
    if (path.length > MAX_PATH_CHARACTERS) {
      const message = `A path is longer than ${MAX_PATH_CHARACTERS} characters.`
      throw new IsolationError('file_failed', message, { limit: 'disk' })
    }
    const name = nameOf(path)
    if (name === '') throw new IsolationError('file_failed', 'The workspace itself is no file.')
    const before = files.get(name)
    const after = taken - (before?.length ?? 0) + content.length
    if (after > maxBytes || (before === undefined && files.size >= MAX_FILES)) {
      throw new IsolationError('file_failed', `${path}: the workspace is full.`, { limit: 'disk' })
    }
    files.set(name, content)
    taken = after
    return name
  }

  return {
    nameOf,
    write,
    /** What a program changed: files that are gone first, so that there is room for the others. */
    put(changed: ChangedFiles): void {
      for (const [path, content] of changed) {
        if (content !== null) continue
        const name = nameOf(path)
        taken -= files.get(name)?.length ?? 0
        files.delete(name)
      }
      for (const [path, content] of changed) if (content !== null) write(path, content)
    },
    read(path: string, maxRead: number): Uint8Array {
      const content = files.get(nameOf(path))
      if (content === undefined) throw new IsolationError('file_failed', `${path}: there is no such file.`)
      if (content.length > maxRead) {
        throw new IsolationError('file_failed', `${path}: more than ${maxRead} bytes.`, { limit: 'output' })
      }
      return content
    },
    list(path: string): FileEntry[] {
      const folder = nameOf(path)
      const prefix = folder === '' ? '' : `${folder}/`
      const found = new Map<string, FileEntry>()
      for (const [name, { length }] of files) {
        if (!name.startsWith(prefix)) continue
        const [first, ...deeper] = name.slice(prefix.length).split('/')
        found.set(first!, {
          name: first!,
          kind: deeper.length > 0 ? 'folder' : 'file',
          bytes: deeper.length > 0 ? 0 : length,
        })
      }
      return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    },
    entries: () => [...files],
    /** All files as bytes: one line with their names and lengths, then their contents. */
    async *packed(): AsyncGenerator<Uint8Array> {
      const all = [...files]
      yield new TextEncoder().encode(`${JSON.stringify(all.map(([name, { length }]) => [name, length]))}\n`)
      for (const [, content] of all) yield content
    },
    /** Puts in what was packed; gives the names. */
    unpack(bytes: Uint8Array): string[] {
      const line = bytes.indexOf(10)
      const index = packedIndex.parse(readJson(new TextDecoder().decode(bytes.subarray(0, line))))
      let at = line + 1
      return index.map(([name, length]) => {
        const content = bytes.slice(at, at + length)
        at += length
        if (content.length !== length) throw new IsolationError('file_failed', 'The files that were kept are cut off.')
        return write(name, content)
      })
    },
    get: (path: string) => files.get(nameOf(path)),
  }
}
