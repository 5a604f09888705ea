/** Resolves after `ms`, or rejects at once with the signal's reason. Leaves no timer and no listener behind. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** Calls back after timers and sockets had their turn. A timer of 0 ms waits a whole one on Node, a tenth of the time at full load. */
export const nextTurn: (act: () => void) => void =
  (globalThis as { setImmediate?: (act: () => void) => unknown }).setImmediate ?? (act => setTimeout(act, 0))

interface BackoffPolicy {
  baseMs: number
  maxMs: number
  /** Full jitter: a uniform draw between 0 and the delay, so that retries of many callers spread out. */
  jitter: boolean
}

/** Delay before try `attempt` + 1, where `attempt` counts from 1: min(max, base · 2^(attempt-1)). */
export function backoffDelay(policy: BackoffPolicy, attempt: number, random: () => number = Math.random): number {
  const full = Math.min(policy.maxMs, policy.baseMs * 2 ** Math.min(attempt - 1, 52))
  return policy.jitter ? Math.floor(random() * full) : full
}
