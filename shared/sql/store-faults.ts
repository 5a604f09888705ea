/** Most files are put back by hand; a log that stays beside one makes another database of it. */
export const RESTORE = 'restore a backup, without the -wal and -shm that are beside the file now'
/** SQLite says the same of a page that is wrong and of one that the disk does not give. */
const DAMAGED =
  'the store is damaged, or its disk fails: stop the service, look at the log of the machine, and restore a backup if `doctor` finds it damaged then'
const UNREADABLE =
  'the disk of the store fails, a quota on it is used up, or its file system has become read-only: look at the quota and at the log of the machine that it belongs to'
/** The code of an error: the path of a store is not that of the open file any more. */
export const STORE_MOVED = 'STORE_MOVED'
const SENTENCES = new Map([
  ['SQLITE_FULL', 'the disk of the store is full: make room on it, then try again'],
  ['SQLITE_CORRUPT', DAMAGED],
  ['SQLITE_NOTADB', DAMAGED],
  ['SQLITE_IOERR', UNREADABLE],
  ['SQLITE_READONLY', UNREADABLE],
  [
    STORE_MOVED,
    'a file of the store was moved, removed or replaced while it was open: stop the service, put the right file in its place, and start it again',
  ],
])

/** The message to an operator about a statement that failed for a reason of the disk; undefined for every other error. */
export function storeFault(error: unknown): string | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    const sentence = 'code' in one ? SENTENCES.get(String(one.code)) : undefined
    if (sentence !== undefined) return sentence
  }
  return undefined
}

/** Whether there is room again is not known before something is written. */
const FULL_MS = 30_000

/** Remembers what was met: a look at the store that only reads says nothing of a full disk, and most looks miss a broken page. */
export function storeFaults(monotonic: () => number = () => performance.now()) {
  let said: string | undefined
  let untilMs = 0
  return {
    note(error: unknown): void {
      const sentence = storeFault(error)
      // Each look sees for itself whether the files of the store are in their place.
      if (
        sentence === undefined ||
        sentence === SENTENCES.get(STORE_MOVED) ||
        (said === DAMAGED && sentence !== DAMAGED)
      )
        return
      said = sentence
      untilMs = sentence === DAMAGED ? Number.POSITIVE_INFINITY : monotonic() + FULL_MS
    },
    get current(): string | undefined {
      return said !== undefined && monotonic() < untilMs ? said : undefined
    },
  }
}
