import type { Log } from '../../shared/log/log.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-fault.ts'
import type { ServerClock } from '../../shared/sql/server-clock.ts'
import { type Clock, systemClock } from '../../shared/time/clock.ts'
import { dueLoop } from '../../shared/time/due-loop.ts'
import type { keyLeases as leasesTable } from '../schema/tables.ts'
import { VaultError } from './vault.ts'

type Stored = RowOf<typeof leasesTable>
/** Any number of `serve` leases may exist at once; a `rotate` lease excludes all others. */
type Purpose = Stored['purpose']

interface Held {
  holder: string
  purpose: Purpose
  untilMs: number
}

/** A libSQL server with more was seen to take no writes any more, for ever. */
export const MOST_WRITERS = 4
const CROWDED = `${MOST_WRITERS} processes write to this database already, and a libSQL server with more can stop taking writes: end one of them, or wait until the lease of one that died has ended`

export interface KeyLeasesDeps {
  db: Db
  clock: Pick<Clock, 'now'>
  holder: string
  leaseMs: number
  /** Whether a holder's process surely ended: its lease counts no more. */
  isGone?: ((holder: string) => boolean) | undefined
}

/**
 * Who has the master key of a store in memory. A process that serves under the old key while another one changes it would seal what
 * cannot be opened later, so each holds a lease, and a rotation and a service exclude each other. The lease of a process that died ends by itself.
 */
export function keyLeases({ db, clock, holder, leaseMs, isGone = () => false }: KeyLeasesDeps) {
  /** Takes the lease, or moves its end on; answers a lease that excludes it. */
  async function take(purpose: Purpose): Promise<Held | undefined> {
    const rows = rowsOf<Pick<Stored, 'holder'>>(await db.execute('select holder from key_leases'))
    const gone = rows.map(row => row.holder).filter(other => other !== holder && isGone(other))
    const nowMs = clock.now().getTime()
    const excluding = purpose === 'rotate' ? 'holder <> ?1' : "holder <> ?1 and purpose = 'rotate'"
    const room = purpose === 'serve' && db.kind === 'remote' ? MOST_WRITERS : Number.MAX_SAFE_INTEGER
    const [, taken, others] = await db.write([
      {
        sql: 'delete from key_leases where until_ms <= ?1 or holder in (select value from json_each(?2))',
        args: [nowMs, JSON.stringify(gone)],
      },
      {
        sql: `insert into key_leases (holder, purpose, until_ms) select ?1, ?2, ?3
          where not exists (select 1 from key_leases where ${excluding})
            and (select count(*) from key_leases where holder <> ?1) < ?4
          on conflict (holder) do update set until_ms = excluded.until_ms`,
        args: [holder, purpose, nowMs + leaseMs, room],
      },
      { sql: `select holder, purpose, until_ms from key_leases where ${excluding} limit 1`, args: [holder] },
    ])
    if (taken?.rowsAffected === 1) return undefined
    const [row] = rowsOf<Stored>(others!)
    if (row === undefined) throw new DbOpenError('busy', CROWDED)
    return { holder: row.holder, purpose: row.purpose, untilMs: row.until_ms }
  }

  return {
    take,

    /** For a service: refuses to start while the key is being changed. */
    async serve(): Promise<void> {
      const other = await take('serve')
      if (other === undefined) return
      const until = new Date(other.untilMs).toISOString()
      const message = `the master key of this store is being changed by ${other.holder}: start again when that has ended, at the latest at ${until}`
      throw new VaultError('other_key', message)
    },

    async release(): Promise<void> {
      await db.execute({ sql: 'delete from key_leases where holder = ?', args: [holder] })
    },
  }
}

export interface MasterKeyLeaseDeps {
  db: Db
  clock: Clock
  serverClock: ServerClock | undefined
  owner: string
  isGone: ((owner: string) => boolean) | undefined
  leaseMs: number
  /** False: nothing runs between requests, so one lease stands for all of these processes, from event to event. */
  timers: boolean
  log: Log
}

const CLOCK_OFF =
  'the clock of this machine differs from that of the database server, whose time counts for all that is due: set both right'
/** By so much certificates, logins at vendors and nodes may notice. */
const OFF_MS = 5000
const WITHOUT_TIMERS = 'a host without timers'
/** Its events come once a minute at least. */
const WITHOUT_TIMERS_MS = 180_000

/** The lease of the master key for as long as a service lives. */
export function masterKeyLease({ db, clock, serverClock, owner, isGone, leaseMs, timers, log }: MasterKeyLeaseDeps) {
  const leases = keyLeases({
    db,
    clock,
    isGone,
    holder: timers ? owner : WITHOUT_TIMERS,
    leaseMs: timers ? leaseMs : WITHOUT_TIMERS_MS,
  })
  const failed = (error: unknown) => log.warn('the lease of the master key could not be renewed', { error })
  let isOff = false

  /** All processes of one store go by the clock of its server. */
  async function compareClocks(): Promise<void> {
    if (serverClock === undefined) return
    const aheadMs = await serverClock.compare()
    const was = isOff
    isOff = Math.abs(aheadMs) > OFF_MS
    if (isOff && !was) log.warn(CLOCK_OFF, { aheadSeconds: Math.round(aheadMs / 1000) })
  }

  const renewals = dueLoop({
    async look() {
      // The loop begins with a look; the lease was taken a moment ago.
      if (fresh) {
        fresh = false
        return undefined
      }
      await compareClocks()
      const other = await leases.take('serve')
      if (other) log.error('the master key is being changed while this service runs: stop it now', { by: other.holder })
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
      await compareClocks()
      await leases.serve()
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
