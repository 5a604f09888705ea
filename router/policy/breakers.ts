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

/** A breaker opened, or closed again. */
export interface BreakerChange {
  provider: string
  /** Of the provider itself, or of one key for it. */
  of: 'provider' | 'key'
  phase: Breaker['phase']
}

/** A key of a caller that is refused must not keep others out, so refusals are held by key; ten thousand are enough. */
const MAX_KEYS = 10_000

/** The breakers of all providers: one each for faults, and one for each credential that was refused. */
export function breakers(clock: Pick<Clock, 'monotonic'>, changed: (change: BreakerChange) => void = () => undefined) {
  const byProvider = new Map<string, Breaker>()
  const byCredential = new Map<string, Breaker>()
  const credentialKey = (provider: string, credential: string) => `${provider} ${credential}`

  function keep(map: Map<string, Breaker>, key: string, breaker: Breaker): void {
    const before = (map.get(key) ?? closedBreaker).phase
    if (before !== breaker.phase) {
      const of = map === byProvider ? 'provider' : 'key'
      changed({ provider: key.split(' ', 1)[0] ?? key, of, phase: breaker.phase })
    }
    map.delete(key)
    // A breaker that never saw anything is the one that any missing key stands for.
    if (breaker.phase === 'closed' && breaker.seconds.length === 0 && breaker.probe === 0) return
    map.set(key, breaker)
    if (map.size > MAX_KEYS) map.delete(map.keys().next().value!)
  }

  /** Whether a call would be let through now; takes nothing. */
  function callable(provider: string, credential: string): boolean {
    const now = clock.monotonic()
    return (
      isCallable(byProvider.get(provider) ?? closedBreaker, now) &&
      isCallable(byCredential.get(credentialKey(provider, credential)) ?? closedBreaker, now)
    )
  }

  return {
    isCallable: callable,
    /** What capabilities and metrics show: the provider's own breaker, for every caller. */
    phaseOf: (provider: string): Breaker['phase'] => (byProvider.get(provider) ?? closedBreaker).phase,
    /** Asks to call; undefined means the call is not made. `credential` is a fingerprint, never a key. */
    enter(provider: string, credential: string): Ticket | undefined {
      const key = credentialKey(provider, credential)
      const now = clock.monotonic()
      if (!callable(provider, credential)) return undefined
      const own = take(byProvider, provider, now)
      const held = take(byCredential, key, now)
      type Step = (breaker: Breaker, pass: Pass, now: number) => Breaker
      const onProvider = (step: Step) =>
        keep(byProvider, provider, step(byProvider.get(provider) ?? closedBreaker, own, clock.monotonic()))
      const onCredential = (step: Step) =>
        keep(byCredential, key, step(byCredential.get(key) ?? closedBreaker, held, clock.monotonic()))
      return {
        succeeded() {
          onProvider(succeeded)
          // The breaker of a credential opens by refusal alone, so only its probe has anything to tell it.
          if (held !== 0) onCredential(succeeded)
        },
        failed() {
          onProvider(failed)
          if (held !== 0) onCredential(abandoned)
        },
        refused(retryAfterMs) {
          // The provider answered: it is up.
          onProvider(succeeded)
          onCredential((breaker, pass, at) => tripped(breaker, pass, at, retryAfterMs))
        },
        abandoned() {
          onProvider(abandoned)
          onCredential(abandoned)
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
