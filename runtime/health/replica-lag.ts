import type { Db } from '../../shared/sql/db.ts'

export interface ReplicaLag {
  /** Runs that the replica does not know yet. */
  runs: number
  /** Between the creation of the newest run there and of the newest one here; infinite where the replica has none. */
  ms: number
}

const NEWEST = 'select rowid, created_ms from runs order by rowid desc limit 1'

/** How far a replica is behind, by the newest run of each side: one row of each, whatever their size. */
export async function replicaLag(primary: Db, replica: Db): Promise<ReplicaLag> {
  // The replica first: what is written between the two reads must not look as if it were ahead.
  const there = (await replica.execute(NEWEST)).rows[0]
  const here = (await primary.execute(NEWEST)).rows[0]
  if (here === undefined) return { runs: 0, ms: 0 }
  if (there === undefined) return { runs: Number(here[0]), ms: Number.POSITIVE_INFINITY }
  return {
    runs: Math.max(0, Number(here[0]) - Number(there[0])),
    ms: Math.max(0, Number(here[1]) - Number(there[1])),
  }
}
