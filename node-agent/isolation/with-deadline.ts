import { IsolationError } from './driver.ts'

/** The work's own result, or a failed start when it takes longer. The work itself is not ended by this. */
export async function withDeadline<T>(work: Promise<T>, deadlineMs: number, reason: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new IsolationError('start_failed', `The sandbox did not start: ${reason}.`)),
    deadlineMs,
  )
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
