import { statSync } from 'node:fs'
import { LibsqlError } from '@libsql/client/sqlite3'
import { STORE_MOVED } from '../sql/store-faults.ts'

/** How often the file system is asked while all is well. */
const LOOK_MS = 1000

/**
 * Whether the file that a connection has open still has its path. What is written to one that was moved or removed is lost to the next start, and a
 * connection that is opened anew would be one to another file.
 */
export function fileInPlace(path: string, monotonic: () => number = () => performance.now()) {
  let known: string | undefined
  let nextMs = Number.NEGATIVE_INFINITY

  /** Undefined: there is none, or it cannot be seen. */
  function identity(): string | undefined {
    try {
      const found = statSync(path, { bigint: true })
      return `${found.dev} ${found.ino}`
    } catch {
      return undefined
    }
  }

  /** Fails where it is another one, or none, and looks again each time until it is back. */
  function check(): void {
    if (known !== undefined && identity() !== known) {
      nextMs = Number.NEGATIVE_INFINITY
      throw new LibsqlError(`The file ${path} is not the one that was opened`, STORE_MOVED)
    }
    nextMs = monotonic() + LOOK_MS
  }

  return {
    check,
    /** Now and then, before what writes. */
    checkSometimes(writes: () => boolean = () => true): void {
      if (monotonic() >= nextMs && writes()) check()
    },
    /** Something was written to it: until then a file system of layers may give it another number. */
    remember(): void {
      known ??= identity()
    },
  }
}
