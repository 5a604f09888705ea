import type { Clock } from '../../shared/time/clock.ts'
import type { Expiring } from './credential-request.ts'

/** From here on a credential is exchanged while calls go on with the one that still holds. */
const EARLY_MS = 300_000
/** So close to its end calls wait for the next one: it must last until the call has arrived. */
const LAST_MS = 60_000
/** After an early exchange that brought nothing new or failed. */
const EARLY_PAUSE_MS = 10_000
/** A source that failed is not asked again by every call of a crowd. */
const FAILED_PAUSE_MS = 1000

export type LastingCredential<T> = ReturnType<typeof lastingCredential<T>>

/** On an edge host an exchange may end with the request that began it, and never say so. */
const MOST_WAIT_MS = 25_000

/**
 * A credential that is exchanged before its end, once for all calls that wait for it. `ahead` exchanges it while calls go on with the last
 * one, which needs a host where work outlasts the request that began it.
 */
export function lastingCredential<T>(
  exchange: () => Promise<Expiring<T>>,
  { clock, ahead }: { clock: Clock; ahead: boolean },
) {
  let held: Expiring<T> | undefined
  let coming: Promise<Expiring<T>> | undefined
  let earlyAt = Number.NEGATIVE_INFINITY
  let failed: { error: unknown; at: number } | undefined

  const renew = () => {
    if (coming !== undefined) return coming
    const one: Promise<Expiring<T>> = exchange()
      .then(next => {
        failed = undefined
        held = next
        return next
      })
      .catch((error: unknown) => {
        failed = { error, at: clock.monotonic() }
        throw error
      })
      .finally(() => {
        if (coming === one) coming = undefined
      })
    coming = one
    return one
  }

  async function waited(signal: AbortSignal): Promise<Expiring<T>> {
    const one = renew()
    const late = AbortSignal.timeout(MOST_WAIT_MS)
    try {
      return await abortable(one, AbortSignal.any([signal, late]))
    } finally {
      if (late.aborted && coming === one) coming = undefined
    }
  }

  return {
    async get(signal: AbortSignal): Promise<T> {
      const left = held === undefined ? 0 : (held.until ?? Number.POSITIVE_INFINITY) - clock.now().getTime()
      if (held !== undefined && left > EARLY_MS) return held.value
      if (held !== undefined && left > LAST_MS) {
        if (ahead && clock.monotonic() - earlyAt > EARLY_PAUSE_MS) {
          earlyAt = clock.monotonic()
          void renew().catch(() => undefined)
        }
        return held.value
      }
      const last = held
      try {
        if (failed !== undefined && clock.monotonic() - failed.at < FAILED_PAUSE_MS) throw failed.error
        return (await waited(signal)).value
      } catch (error) {
        if (last !== undefined && left > 0 && !signal.aborted) return last.value
        throw error
      }
    },
    /** It was refused before its end: no call uses it again. */
    drop(isRefused: (value: T) => boolean): void {
      if (held !== undefined && isRefused(held.value)) held = undefined
    },
  }
}

/** The exchange goes on for those who still wait when one call is given up. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
