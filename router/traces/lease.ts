import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { writerLease as leases } from '../schema/tables.ts'

type Row = RowOf<typeof leases>

/** A stretch of time in which one process may write. Every write names it, so a process that lost it writes nothing more. */
export interface LeaseTerm {
  readonly holder: string
  readonly epoch: number
}

/** Holds while the term does; its arguments are the holder and the epoch. */
export const leaseCondition = "exists (select 1 from writer_lease where name = 'traces' and holder = ? and epoch = ?)"

export interface LeaseOptions {
  db: Db
  clock: Clock
  /** Unique to this process and to this writer in it. */
  holder: string
  /** How long the lease lasts without a renewal. */
  ttlMs: number
  /** Reports that a holder's process no longer runs, so that its lease need not be waited for. A wrong answer cannot harm the chain. */
  isGone: (holder: string) => boolean
}

// A new holder raises the epoch, which ends the old term in the same statement.
const takeSql = `insert into writer_lease (name, holder, epoch, expires_ms) values ('traces', ?1, 1, ?2)
  on conflict (name) do update set epoch = epoch + (holder <> excluded.holder), holder = excluded.holder,
    expires_ms = excluded.expires_ms, wanted_by = case when wanted_by = excluded.holder then null else wanted_by end
  where holder = excluded.holder or expires_ms <= ?3 or holder = ?4
  returning epoch, wanted_by`

/**
 * The writer's lease on a store. It is taken when there is something to write and renewed while there is, so an idle process writes nothing.
 * Clocks of several machines may differ: that can only make a takeover early or late, since each write checks the epoch.
 */
export function writerLease({ db, clock, holder, ttlMs, isGone }: LeaseOptions) {
  let term: LeaseTerm | undefined
  let renewAt = 0
  let wanted = false

  async function take(goneHolder: string | null): Promise<boolean> {
    const now = clock.now().getTime()
    const answer = await db.execute({ sql: takeSql, args: [holder, now + ttlMs, now, goneHolder] })
    const [row] = rowsOf<Pick<Row, 'epoch' | 'wanted_by'>>(answer)
    if (row === undefined) return false
    term = { holder, epoch: row.epoch }
    wanted = row.wanted_by !== null
    renewAt = clock.monotonic() + ttlMs / 3
    return true
  }

  return {
    /** The term in which to write now, or nothing while another process holds the lease. */
    async hold(): Promise<LeaseTerm | undefined> {
      if (term !== undefined && clock.monotonic() < renewAt) return term
      if (await take(null)) return term
      term = undefined
      const answer = await db.execute("select holder from writer_lease where name = 'traces'")
      const other = rowsOf<Pick<Row, 'holder'>>(answer)[0]?.holder
      if (other !== undefined && isGone(other) && (await take(other))) return term
      await db.execute({
        sql: "update writer_lease set wanted_by = ?1 where name = 'traces' and holder <> ?1 and (wanted_by is null or wanted_by <> ?1)",
        args: [holder],
      })
      return undefined
    },
    /** Another process waits for its turn: at the last renewal it had said so. */
    get wanted(): boolean {
      return term !== undefined && wanted
    },
    /** A write found the term ended. */
    lost(): void {
      term = undefined
    },
    /** Lets others write without waiting for the lease to run out. */
    async release(): Promise<void> {
      if (term === undefined) return
      const { epoch } = term
      term = undefined
      await db.execute({
        sql: "update writer_lease set expires_ms = 0 where name = 'traces' and holder = ? and epoch = ?",
        args: [holder, epoch],
      })
    },
  }
}
