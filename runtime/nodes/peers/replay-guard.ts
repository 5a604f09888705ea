import { toHex } from '../../../shared/sign/bytes.ts'

/** Further apart no two clocks of one installation may be, and no older may a request be. */
export const PEER_SKEW_MS = 30_000
const MOST_SEEN = 200_000

export type Freshness = 'fresh' | 'late' | 'repeated' | 'too_many'

/**
 * Lets each request through once. What is older than `PEER_SKEW_MS`, or than this process, is late; what is younger is remembered until
 * it would be late, so that nothing that was heard on the way works again. Where more than can be remembered come, the next are refused.
 */
export function replayGuard(startedMs: number, most = MOST_SEEN) {
  /** By the time at which each would be late; in the order in which they came. */
  const seen = new Map<string, number>()
  return (salt: Uint8Array, atMs: number, nowMs: number): Freshness => {
    for (const [known, lateMs] of seen) {
      if (lateMs >= nowMs) break
      seen.delete(known)
    }
    if (Math.abs(nowMs - atMs) > PEER_SKEW_MS || atMs < startedMs) return 'late'
    const name = toHex(salt)
    if (seen.has(name)) return 'repeated'
    if (seen.size >= most) return 'too_many'
    // From now, and not from when it was made: so they leave in the order in which they came.
    seen.set(name, nowMs + 2 * PEER_SKEW_MS)
    return 'fresh'
  }
}
