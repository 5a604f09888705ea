import { dbFault, pause, StoreLockedError } from './db-fault.ts'
import { markUnavailable } from './store-unavailable.ts'
import { writeQueue } from './write-queue.ts'

export interface LockWaitsOptions {
  longestWaitMs?: number
  wait?: (ms: number) => Promise<void>
  monotonic?: () => number
}

export type LockWaits = ReturnType<typeof lockWaits>

/**
 * Waits for the write lock of a file that another process holds. The engine's own wait stops this thread, and with it everything that
 * needs no lock; here only who needs it waits. One of them asks for the lock, the others stand behind it in the order of their coming.
 */
export function lockWaits({
  longestWaitMs = 10_000,
  wait = pause,
  monotonic = () => performance.now(),
}: LockWaitsOptions = {}) {
  const inTurn = writeQueue({ longestWaitMs })
  let waiting = 0

  async function untilFree<T>(act: () => Promise<T>, untilMs: number, met: boolean): Promise<T> {
    for (let tried = met ? 1 : 0; ; tried++) {
      // Half fixed, half random, so two processes that collided do not collide again in step.
      const ceiling = Math.min(250, 10 * 2 ** tried)
      if (tried > 0) await wait(ceiling / 2 + (Math.random() * ceiling) / 2)
      try {
        return await act()
      } catch (error) {
        if (!isLocked(error) || monotonic() >= untilMs) throw error
      }
    }
  }

  return {
    async run<T>(act: () => Promise<T>, onlyReads: () => boolean): Promise<T> {
      const met = waiting === 0 || onlyReads()
      if (met) {
        try {
          return await act()
        } catch (error) {
          if (!isLocked(error)) throw error
        }
      }
      const untilMs = monotonic() + longestWaitMs
      waiting++
      try {
        return await inTurn(() => untilFree(act, untilMs, met))
      } catch (error) {
        if (dbFault(error) !== 'busy') throw error
        return markUnavailable(() => Promise.reject(new StoreLockedError(error)))
      } finally {
        waiting--
      }
    },
  }
}

/** A transaction of this process that is open (TRANSACTION_ACTIVE) is no lock of another one. */
function isLocked(error: unknown): boolean {
  return (
    dbFault(error) === 'busy' && !(error instanceof Error && 'code' in error && error.code === 'TRANSACTION_ACTIVE')
  )
}
