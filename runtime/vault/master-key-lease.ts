import type { Log } from '../../shared/log/log.ts'
import { aheadOfServer, type Db } from '../../shared/sql/db.ts'
import { type Clock, systemClock } from '../../shared/time/clock.ts'
import { dueLoop } from '../../shared/time/due-loop.ts'
import { keyLeases } from './key-leases.ts'

export interface MasterKeyLeaseDeps {
  db: Db
  clock: Clock
  owner: string
  isGone: ((owner: string) => boolean) | undefined
  leaseMs: number
  /** False: nothing runs between requests, so one lease stands for all of these processes, from event to event. */
  timers: boolean
  log: Log
}

const CLOCK_OFF =
  'the clock differs from that of the database server: schedules, waits and approvals of this store end too early or too late; set both right'
const WITHOUT_TIMERS = 'a host without timers'
/** Its events come once a minute at least. */
const WITHOUT_TIMERS_MS = 180_000

/** The lease of the master key for as long as a service lives. */
export function masterKeyLease({ db, clock, owner, isGone, leaseMs, timers, log }: MasterKeyLeaseDeps) {
  const leases = keyLeases({
    db,
    clock,
    isGone,
    holder: timers ? owner : WITHOUT_TIMERS,
    leaseMs: timers ? leaseMs : WITHOUT_TIMERS_MS,
  })
  const failed = (error: unknown) => log.warn('the lease of the master key could not be renewed', { error })
  let isOff = false

  /** Processes of one store go by their clocks in what is due, but for leases. */
  async function compareClocks(): Promise<void> {
    if (db.kind !== 'remote') return
    const aheadMs = await aheadOfServer(db, clock.now)
    const was = isOff
    isOff = Math.abs(aheadMs) > leaseMs / 2
    if (isOff && !was) log.error(CLOCK_OFF, { aheadSeconds: Math.round(aheadMs / 1000) })
  }

  const renewals = dueLoop({
    async look() {
      // The loop begins with a look; the lease was taken a moment ago.
      if (fresh) {
        fresh = false
        return undefined
      }
      const other = await leases.take('serve')
      if (other) log.error('the master key is being changed while this service runs: stop it now', { by: other.holder })
      await compareClocks()
      return undefined
    },
    failed,
    // The lease is renewed by real time, whatever the clock of the service says.
    clock: systemClock,
    longestPauseMs: leaseMs / 3,
  })
  let held = false
  let fresh = true

  return {
    /** Refuses while the key is being changed. Where there are timers the lease is renewed until the end, else by calling this again. */
    async take(): Promise<void> {
      await leases.serve()
      await compareClocks()
      held = true
      if (timers) renewals.start()
    },
    async stop(): Promise<void> {
      await renewals.stop()
      // Left behind, it ends by itself.
      if (held && timers) await leases.release().catch(failed)
    },
  }
}
