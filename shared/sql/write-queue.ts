/** Nothing was written: others of this process were writing all the while. */
class WriteTurnError extends Error {
  override name = 'WriteTurnError'
  /** The same statement may succeed in a moment. */
  readonly code = 'SQLITE_BUSY'
}

const LONGEST_WAIT_MS = 10_000

/**
 * Lets one write of this process be under way at a time, in the order of their coming. A server has one writer anyway, and sqld lets the
 * others wait in a busy loop, each on a thread of its own: with 250 of them the one that writes gets no processor (measured: on two
 * cores writes stood still for minutes). So it is better to wait here, where waiting costs nothing.
 */
export function writeQueue({ longestWaitMs = LONGEST_WAIT_MS }: { longestWaitMs?: number } = {}) {
  const waiting: (() => void)[] = []
  let writing = false

  function turn(): Promise<void> {
    if (!writing) {
      writing = true
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const go = () => {
        clearTimeout(late)
        resolve()
      }
      const late = setTimeout(() => {
        waiting.splice(waiting.indexOf(go), 1)
        reject(
          new WriteTurnError(`The store did not take this write within ${longestWaitMs / 1000} s: try again later.`),
        )
      }, longestWaitMs)
      waiting.push(go)
    })
  }

  return async function inTurn<T>(write: () => Promise<T>): Promise<T> {
    await turn()
    try {
      return await write()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else writing = false
    }
  }
}
