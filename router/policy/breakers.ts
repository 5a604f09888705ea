import type { UpstreamError } from '../../shared/dialects/candidate.ts'
import { type Log, rateLimitedLog } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'

export type Breakers = ReturnType<typeof breakers>

/** Leave to call a provider; exactly one of its ends is called when the call is over. */
export interface Ticket {
  succeeded(): void
  failed(): void
  /** 429 or 401: what the upstream asked to wait, if it said, and its words. */
  refused(retryAfterMs: number | null, said?: KeyRefusal): void
  abandoned(): void
}

/** How a provider refused a key. */
export interface KeyRefusal {
  readonly errorClass: 'rate_limited' | 'auth'
  readonly status: number
  readonly error: UpstreamError | null
}

/** Why and how long no call is made. */
export interface Rest {
  readonly ms: number
  /** Undefined where the provider failed, or nothing rests. */
  readonly said: KeyRefusal | undefined
}

/** A breaker opened, or closed again. */
interface BreakerChange {
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
    /** How long until a call may be let through; the answer of a probe that is out is awaited for a second. */
    restOf(provider: string, credential: string): Rest {
      const now = clock.monotonic()
      const rests = (breaker: Breaker) => {
        if (isCallable(breaker, now)) return 0
        return breaker.phase === 'half_open' ? PROBE_AWAITED_MS : breaker.until - now
      }
      const own = rests(byProvider.get(provider) ?? closedBreaker)
      const held = byCredential.get(credentialKey(provider, credential)) ?? closedBreaker
      const ms = rests(held)
      return ms === 0 ? { ms: own, said: undefined } : { ms: Math.max(ms, own), said: held.said }
    },
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
        refused(retryAfterMs, said) {
          // The provider answered: it is up.
          onProvider(succeeded)
          onCredential((breaker, pass, at) => ({ ...tripped(breaker, pass, at, retryAfterMs), ...(said && { said }) }))
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

/**
 * A circuit breaker as a pure state machine: each step takes a state and a time in milliseconds and gives the next
 * state. docs/spec/router.md §4, step 11.
 */
export interface Breaker {
  readonly phase: 'closed' | 'open' | 'half_open'
  /** Calls of the last 30 s by second, so that memory does not grow with traffic. */
  readonly seconds: readonly { readonly at: number; readonly calls: number; readonly failed: number }[]
  /** While open: when a probe may pass. While half open: when a probe that never came back is given up on. */
  readonly until: number
  /** How long the next opening lasts. */
  readonly coolDownMs: number
  /** Number of the latest probe; results of others do not count while half open. */
  readonly probe: number
  /** Of a credential: by which words it was refused last. */
  readonly said?: KeyRefusal
}

/** Says on return which call it was: 0 for an ordinary one, else the number of the probe. */
export type Pass = number

const WINDOW_S = 30
const MIN_FAILURES = 5
const FAILED_SHARE = 0.5
export const COOL_DOWN_MS = 10_000
export const MAX_COOL_DOWN_MS = 120_000
/** No request lives longer by default, so a probe that is still out is lost. */
const PROBE_LEASE_MS = 600_000
const PROBE_AWAITED_MS = 1000

export const closedBreaker: Breaker = { phase: 'closed', seconds: [], until: 0, coolDownMs: COOL_DOWN_MS, probe: 0 }

/** Whether a call would be let through, without taking the place of the probe. */
export function isCallable(breaker: Breaker, now: number): boolean {
  return breaker.phase === 'closed' || now >= breaker.until
}

/** Asks to make a call. Of an open breaker whose time is over, one call passes as the probe. */
export function enter(breaker: Breaker, now: number): { breaker: Breaker; pass: Pass | null } {
  if (breaker.phase === 'closed') return { breaker, pass: 0 }
  if (now < breaker.until) return { breaker, pass: null }
  const probe = breaker.probe + 1
  return { breaker: { ...breaker, phase: 'half_open', until: now + PROBE_LEASE_MS, probe }, pass: probe }
}

export function succeeded(breaker: Breaker, pass: Pass, now: number): Breaker {
  if (breaker.phase === 'closed') return { ...breaker, seconds: counted(breaker, now, false) }
  return isProbe(breaker, pass) ? { ...closedBreaker, probe: breaker.probe } : breaker
}

/** A call failed in a way that speaks about the provider: transport, 5xx, 529. */
export function failed(breaker: Breaker, pass: Pass, now: number): Breaker {
  if (breaker.phase === 'closed') {
    const seconds = counted(breaker, now, true)
    const failures = seconds.reduce((sum, second) => sum + second.failed, 0)
    const calls = seconds.reduce((sum, second) => sum + second.calls, 0)
    const opens = failures >= MIN_FAILURES && failures >= calls * FAILED_SHARE
    return opens ? opened(breaker, now, breaker.coolDownMs) : { ...breaker, seconds }
  }
  return isProbe(breaker, pass) ? opened(breaker, now, breaker.coolDownMs) : breaker
}

/** A call ended without a word about the provider (the client left): a probe makes room for another. */
export function abandoned(breaker: Breaker, pass: Pass, now: number): Breaker {
  return isProbe(breaker, pass) ? { ...breaker, phase: 'open', until: now } : breaker
}

/** A refusal that holds for every call (429, 401): opens at once, for as long as the upstream asked. */
export function tripped(breaker: Breaker, pass: Pass, now: number, retryAfterMs: number | null): Breaker {
  if (breaker.phase !== 'closed' && !isProbe(breaker, pass)) {
    // Calls that were already out say the same again; they lengthen the pause but do not double it.
    const until = breaker.phase === 'open' && retryAfterMs !== null ? now + retryAfterMs : breaker.until
    return { ...breaker, until: Math.max(breaker.until, until) }
  }
  return opened(breaker, now, retryAfterMs ?? breaker.coolDownMs)
}

const isProbe = (breaker: Breaker, pass: Pass) => breaker.phase === 'half_open' && pass !== 0 && pass === breaker.probe

function opened(breaker: Breaker, now: number, forMs: number): Breaker {
  const coolDownMs = Math.min(MAX_COOL_DOWN_MS, breaker.coolDownMs * 2)
  return { ...breaker, phase: 'open', seconds: [], until: now + forMs, coolDownMs }
}

function counted({ seconds }: Breaker, now: number, isFailure: boolean): Breaker['seconds'] {
  const at = Math.floor(now / 1000)
  const failures = isFailure ? 1 : 0
  const last = seconds.at(-1)
  if (last?.at === at) return seconds.with(-1, { at, calls: last.calls + 1, failed: last.failed + failures })
  return [...seconds.filter(second => at - second.at < WINDOW_S), { at, calls: 1, failed: failures }]
}

/** A line when a breaker opens and when it closes; of keys, which callers bring by the thousand, once a minute for a provider. */
export function breakerLines(log: Log, clock: Clock): (change: BreakerChange) => void {
  const once = rateLimitedLog(clock)
  return ({ provider, of, phase }) => {
    // Half open is a question; its answer is a line.
    if (phase === 'half_open') return
    const say = () => {
      if (phase === 'closed') log.info(`a ${of} is called again: its breaker is closed`, { provider })
      else log.warn(`a ${of} is not called for a while: its breaker is open`, { provider })
    }
    if (of === 'provider') say()
    else once(`${provider} ${phase}`, say)
  }
}
