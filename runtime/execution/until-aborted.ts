import { stopUnder } from '../../shared/time/stop-under.ts'

/** What `make` gives, or the reason why `signal` ended it; work that ignores its signal is left behind, and none is started too late. */
export function unlessAborted<T>(signal: AbortSignal, make: (signal: AbortSignal) => Promise<T>): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason)
  return new Promise<T>((resolve, reject) => {
    const stopped = () => reject(signal.reason)
    signal.addEventListener('abort', stopped, { once: true })
    const over = () => signal.removeEventListener('abort', stopped)
    make(signal).then(
      value => {
        over()
        resolve(value)
      },
      error => {
        over()
        reject(error)
      },
    )
  })
}

/** The same with a deadline, after which the work ends for the reason that `late` gives. */
export async function underDeadline<T>(
  outer: AbortSignal,
  ms: number,
  make: (signal: AbortSignal) => Promise<T>,
  late: () => Error,
): Promise<T> {
  if (outer.aborted) throw outer.reason
  const { stop, leave } = stopUnder(outer)
  const timer = setTimeout(() => stop.abort(late()), ms)
  try {
    return await unlessAborted(stop.signal, make)
  } finally {
    clearTimeout(timer)
    leave()
  }
}
