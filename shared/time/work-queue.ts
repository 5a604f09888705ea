/** Runs what it is given one after the other; what fails stops nothing that comes after it. */
export function workQueue() {
  let last: Promise<unknown> = Promise.resolve()
  return {
    run<T>(work: () => Promise<T>): Promise<T> {
      const mine = last.then(work, work)
      last = mine.catch(() => undefined)
      return mine
    },
    /** Resolves when all that was given until now has ended. */
    idle: () => last,
  }
}

/** Runs what concerns one key after the other, so that of many that compete in a process none decides on what is about to change. */
export function perKeyQueue() {
  const last = new Map<string, Promise<unknown>>()
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const before = last.get(key)
    const mine = before === undefined ? work() : before.then(work, work)
    last.set(key, mine)
    try {
      return await mine
    } finally {
      if (last.get(key) === mine) last.delete(key)
    }
  }
}
