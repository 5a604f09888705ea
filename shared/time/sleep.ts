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

let isShared = false
/** For a host in which a request may wait for what another one began; in workerd that may never come. */
export function sharePageTurns(): void {
  isShared = true
}

const readers: (() => void)[] = []
/** Rounds of the host in which a short request comes from its socket to its answer. */
const ROUNDS_OF_A_REQUEST = 8

/**
 * A turn of those who read page after page. They go on one at a time, and between two of them a short request is answered: it waits for one
 * page, and not for as many as there are readers.
 */
export function pageTurn(): Promise<void> {
  if (!isShared) return new Promise<void>(nextTurn)
  return new Promise(resolve => {
    if (readers.push(resolve) === 1) afterRounds(ROUNDS_OF_A_REQUEST)
  })
}

function afterRounds(left: number): void {
  nextTurn(() => {
    if (left > 1) return afterRounds(left - 1)
    readers[0]?.()
    readers.shift()
    if (readers.length > 0) afterRounds(ROUNDS_OF_A_REQUEST)
  })
}

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
