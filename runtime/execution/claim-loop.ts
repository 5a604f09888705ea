import type { InStatement, ResultSet } from '@libsql/client/web'
import { REPEATS_OMITTED, rateLimitedLog } from '../../shared/log/log.ts'
import { dbFault } from '../../shared/sql/db-fault.ts'
import type { EngineDeps } from './engine-deps.ts'
import type { Claim, Claimed, ClaimOptions, LeaseStore, NewlyMade } from './lease-store.ts'

/** A store that failed may be back long before the next sweep. */
export const GIVE_BACK_MS = 1000

/** What a process holds, as far as a look for more of it has to know. */
export interface Taken {
  count(): number
  /** What is executed or ended here. */
  ids(): string[]
  /** These are held under the name of this process from now on. */
  claimed(ids: readonly string[]): Promise<void> | void
  start(run: Claimed): void
}

/** A claim that is part of another transaction: the one that makes runs. Either `done` or `failed` follows. */
export interface JoinedClaim {
  /** For the end of the transaction. */
  statements: InStatement[]
  /** Takes the results of those statements; `made` is what is known of the runs that were made, by id. */
  done(results: readonly ResultSet[], made: ReadonlyMap<string, NewlyMade>): void
  failed(error: unknown): void
}

export type ClaimLoop = ReturnType<typeof claimLoop>

/** Looks for runs that are due, when it is woken and when the next one becomes due, until it is stopped. */
export function claimLoop(deps: EngineDeps, leases: LeaseStore, taken: Taken) {
  const { clock, log, owner, nodeId, limits } = deps
  const timer = dueTimer(deps, () => wake())
  const looks = oneAfterAnother(claim)
  const once = rateLimitedLog(clock)
  let stopped = false
  /** A claim whose answer was lost may have been made: what the store has under this name and this process does not hold is released. */
  let doubtful = false

  /** What a claim asks for; undefined where there is no room. */
  function options(): ClaimOptions | undefined {
    const slots = limits.maxConcurrent
    const most = slots - taken.count()
    if (most <= 0 || stopped) return undefined
    const nowMs = clock.now().getTime()
    return { owner, nodeId: nodeId(), nowMs, ttlMs: limits.leaseMs, most, slots, held: taken.ids() }
  }

  /** Looks for runs that are due, now. Cheap to call often: looks do not pile up. */
  function wake(): void {
    if (!stopped) looks.ask()
  }

  async function claim(): Promise<void> {
    try {
      let due: number | undefined
      do {
        looks.begin()
        const asked = options()
        if (!asked) return
        if (doubtful) await leases.releaseOthers(owner, taken.ids())
        doubtful = false
        const found = await leases.claim(asked)
        await take(found)
        if (found.claimed.length === asked.most) return
        due = found.nextDue
      } while (looks.again)
      if (!stopped) timer.set(due)
    } catch (error) {
      fail(error)
    }
  }

  async function take({ claimed }: Claim): Promise<void> {
    if (claimed.length > 0) await taken.claimed(claimed.map(({ id }) => id))
    for (const run of claimed) taken.start(run)
  }

  function fail(error: unknown): void {
    once('failed', () => log.error(`runs could not be claimed; ${REPEATS_OMITTED}`, { error }))
    doubtful = true
    if (!stopped) timer.wakeBy(GIVE_BACK_MS)
  }

  /** The claim of a transaction that makes runs due, so that they need none of their own; undefined where it would take nothing. */
  function beside(): JoinedClaim | undefined {
    const asked = looks.current || doubtful ? undefined : options()
    if (!asked) return undefined
    looks.begin()
    const ofAll = leases.claimAllStatements(asked)
    async function found(results: readonly ResultSet[], made: ReadonlyMap<string, NewlyMade>): Promise<void> {
      const claim = await leases.claimed(results, made)
      await take(claim)
      // What it left is taken by turns.
      if (ofAll && (claim.nextDue ?? Infinity) <= asked!.nowMs) wake()
      else if (!stopped && claim.claimed.length < asked!.most) timer.set(claim.nextDue)
    }
    return claimBeside(ofAll ?? leases.claimStatements(asked), { track: looks.track, found, fail })
  }

  return {
    wake,
    beside,

    /** A run was let go by a commit that saw when the first of all is due: only where one is due now is there something to look for. */
    released(firstDueMs: number | undefined): void {
      if (stopped) return
      if (looks.current) looks.ask()
      else if (firstDueMs !== undefined && firstDueMs <= clock.now().getTime()) wake()
      else timer.setSooner(firstDueMs)
    },

    /** The look that is under way. */
    get current() {
      return looks.current
    },

    /** When the next look is due. */
    get nextAt() {
      return timer.at
    },

    get stopped() {
      return stopped
    },

    stop(): void {
      stopped = true
      timer.clear()
    },
  }
}

/** One look at a time; what asks during one is looked for once more. */
function oneAfterAnother(look: () => Promise<void>) {
  let current: Promise<void> | undefined
  let again = false

  function track(one: Promise<void>): void {
    current = one.finally(() => {
      current = undefined
      // It was asked for during a look that took as many as there was room for.
      if (again) ask()
    })
  }

  function ask(): void {
    if (current) again = true
    else track(look())
  }

  return {
    ask,
    track,
    /** What was asked for up to now is answered by the look that begins. */
    begin(): void {
      again = false
    },
    get again() {
      return again
    },
    get current() {
      return current
    },
  }
}

interface BesideHands {
  track(look: Promise<void>): void
  found(results: readonly ResultSet[], made: ReadonlyMap<string, NewlyMade>): Promise<void>
  fail(error: unknown): void
}

/** A look that is under way until its transaction is. */
function claimBeside(statements: InStatement[], { track, found, fail }: BesideHands): JoinedClaim {
  const { promise, resolve } = Promise.withResolvers<void>()
  track(promise)
  return {
    statements,
    done: (results, made) => resolve(found(results, made).catch(fail)),
    failed(error) {
      if (dbFault(error) === 'unknown') fail(error)
      resolve()
    },
  }
}

/** Wakes when the next run is due. Beyond the next sweep there is nothing to set it for. */
function dueTimer({ clock, limits }: Pick<EngineDeps, 'clock' | 'limits'>, wake: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let at = 0

  function clear(): void {
    clearTimeout(timer)
    timer = undefined
  }

  function start(ms: number): void {
    clear()
    at = clock.monotonic() + ms
    timer = setTimeout(() => {
      timer = undefined
      wake()
    }, ms)
  }

  const untilDue = (dueMs: number) => Math.max(0, dueMs - clock.now().getTime())

  return {
    clear,
    /** What was due at the last look and not taken is beyond a tenant's share: it is looked for when a run ends here. */
    set(dueMs: number | undefined): void {
      clear()
      if (dueMs !== undefined && untilDue(dueMs) < limits.recoveryMs) start(untilDue(dueMs))
    },
    /** Never later than it is set for: what it was set for may have been seen after this. */
    setSooner(dueMs: number | undefined): void {
      if (dueMs === undefined) return
      const ms = untilDue(dueMs)
      if (ms < limits.recoveryMs && (timer === undefined || clock.monotonic() + ms < at)) start(ms)
    },
    wakeBy(ms: number): void {
      if (timer === undefined) start(ms)
    },
    get at() {
      return timer === undefined ? undefined : at
    },
  }
}
