export interface BackoffPolicy {
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
