import { RESTORE } from '../sql/store-faults.ts'

/** What the operator can mend about a file, or a limit of the system, by the code of its error. */
const SAYS: Readonly<Record<string, string>> = {
  EACCES: 'this account may not use it: name another path, or change its owner or mode',
  EPERM: 'this account may not use it: name another path, or change its owner or mode',
  EISDIR: 'it is a folder: name a file',
  ENOTDIR: 'it lies below a file, not a folder: name another path',
  EROFS: 'its file system takes no writes: name another path',
  SQLITE_FULL: 'no room is left on the disk: make room, or name a path on another one',
  SQLITE_READONLY:
    'the disk of the store takes no writes: look at the log of the machine, and copy the store to another disk',
  SQLITE_IOERR: 'the disk of the store fails: look at the log of the machine, and copy the store to another disk',
  SQLITE_CORRUPT: `the store is damaged, or its disk fails: look at the log of the machine, then ${RESTORE}`,
  ERR_WORKER_INIT_FAILED: 'no further thread can be started: raise the limit of processes (--pids-limit, TasksMax)',
  ENOSPC: 'no room is left on the disk: make room, or name a path on another one',
}

/** The sentence for an error of the file system that is the operator's to mend; undefined for a fault of this program. */
export function fileProblem(error: unknown, named?: string): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  // It has the code of a disk that takes no writes, and is a fault of the program.
  if (error.name === 'ReadOnlyDbError') return undefined
  const says = Object.hasOwn(SAYS, String(error.code)) ? SAYS[String(error.code)] : undefined
  // Of a copy, the room is missing where it was to be.
  const place = error.code === 'ENOSPC' && 'dest' in error ? error.dest : 'path' in error ? error.path : undefined
  const path = typeof place === 'string' ? place : named
  if (says === undefined) return undefined
  const text = path === undefined ? says[0]!.toUpperCase() + says.slice(1) : `${path}: ${says}`
  return `${text} (${String(error.code)})`
}
