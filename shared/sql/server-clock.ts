import { type Clock, systemClock } from '../time/clock.ts'
import { type Db, rowsOf } from './db.ts'

/** The time of the database server that several processes write to: what is due for one of them is due for all. */
export interface ServerClock extends Clock {
  /** Asks the server; answers how many milliseconds the clock of this machine is ahead of it. */
  compare(): Promise<number>
}

/** By less a clock is not put right: it would go back and forth with the time that answers take. */
const OVERLOOKED_MS = 250

/** Goes on from the server's time by the clock that never jumps, so it holds while the server is away and the machine's clock is put. */
export function serverClock(db: Pick<Db, 'execute'>, host: Clock = systemClock): ServerClock {
  let zeroMs = host.now().getTime() - host.monotonic()
  const now = () => new Date(zeroMs + host.monotonic())
  return {
    now,
    monotonic: host.monotonic,
    async compare() {
      const aheadMs = await aheadOfServer(db, now)
      if (Math.abs(aheadMs) > OVERLOOKED_MS) zeroMs -= aheadMs
      return host.now().getTime() - now().getTime()
    },
  }
}

/** The clock that the processes of this store go by: the server's, or of a file that of the machine. */
export async function clockOfStore(db: Pick<Db, 'execute' | 'kind'>): Promise<Clock> {
  if (db.kind !== 'remote') return systemClock
  const clock = serverClock(db)
  await clock.compare()
  return clock
}

/** How many milliseconds this clock is ahead of the database server's; 0 where the difference is less than its answer can show. */
export async function aheadOfServer(db: Pick<Db, 'execute'>, now: () => Date): Promise<number> {
  const before = now().getTime()
  const answer = await db.execute("select cast(unixepoch('subsec') * 1000 as integer) as ms")
  const after = now().getTime()
  const server = rowsOf<{ ms: number }>(answer)[0]?.ms ?? 0
  return Math.max(0, before - server) + Math.min(0, after - server)
}
