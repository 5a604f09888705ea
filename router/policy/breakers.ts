import type { Clock } from '../../shared/time/clock.ts'
import {
  abandoned,
  type Breaker,
  closedBreaker,
  enter,
  failed,
  isCallable,
  type Pass,
  succeeded,
  tripped,
} from './breaker.ts'

export type Breakers = ReturnType<typeof breakers>

/** Leave to call a provider; exactly one of its ends is called when the call is over. */
export interface Ticket {
  succeeded(): void
  failed(): void
  /** 429 or 401: what the upstream asked to wait, if it said. */
  refused(retryAfterMs: number | null): void
  abandoned(): void
}

/** A key of a caller that is refused must not keep others out, so refusals are held by key; ten thousand are enough. */
const MAX_KEYS = 10_000

/** The breakers of all providers: one each for faults, and one for each credential that was refused. */
export function breakers(clock: Pick<Clock, 'monotonic'>) {
  const byProvider = new Map<string, Breaker>()
  const byCredential = new Map<string, Breaker>()
  const credentialKey = (provider: string, credential: string) => `${provider} ${credential}`

  function keep(map: Map<string, Breaker>, key: string, breaker: Breaker): void {
    map.delete(key)
    // A breaker that never saw anything is the one that any missing key stands for.
    if (breaker.phase === 'closed' && breaker.seconds.length === 0) return
    map.set(key, breaker)
    if (map.size > MAX_KEYS) map.delete(map.keys().next().value!)
  }

  return {
    /** Whether a call would be let through now; takes nothing. */
    isCallable(provider: string, credential: string): boolean {
      const now = clock.monotonic()
      return (
        isCallable(byProvider.get(provider) ?? closedBreaker, now) &&
        isCallable(byCredential.get(credentialKey(provider, credential)) ?? closedBreaker, now)
      )
    },
    /** What capabilities and metrics show: the provider's own breaker, whoever is calling. */
    phaseOf: (provider: string): Breaker['phase'] => (byProvider.get(provider) ?? closedBreaker).phase,
    /** Asks to call; undefined means the call is not made. `credential` is a fingerprint, never a key. */
    enter(provider: string, credential: string): Ticket | undefined {
      const key = credentialKey(provider, credential)
      const now = clock.monotonic()
      if (!this.isCallable(provider, credential)) return undefined
      const own = take(byProvider, provider, now)
      const held = take(byCredential, key, now)
      const end = (step: (breaker: Breaker, pass: Pass, now: number) => Breaker, map: 'provider' | 'credential') => {
        const at = clock.monotonic()
        if (map === 'provider') keep(byProvider, provider, step(byProvider.get(provider) ?? closedBreaker, own, at))
        else keep(byCredential, key, step(byCredential.get(key) ?? closedBreaker, held, at))
      }
      // A breaker of a credential opens by refusal alone and closes by any other answer; it counts nothing.
      const clear = () => {
        if (held !== 0) end(succeeded, 'credential')
      }
      return {
        succeeded() {
          end(succeeded, 'provider')
          clear()
        },
        failed() {
          end(failed, 'provider')
          if (held !== 0) end(abandoned, 'credential')
        },
        refused(retryAfterMs) {
          // The provider answered: it is up.
          end(succeeded, 'provider')
          end((breaker, pass, at) => tripped(breaker, pass, at, retryAfterMs), 'credential')
        },
        abandoned() {
          end(abandoned, 'provider')
          end(abandoned, 'credential')
        },
      }
    },
  }

  function take(map: Map<string, Breaker>, key: string, now: number): Pass {
    const entered = enter(map.get(key) ?? closedBreaker, now)
    keep(map, key, entered.breaker)
    return entered.pass ?? 0
  }
}
