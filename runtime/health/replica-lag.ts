import { type Db, rowsOf } from '../../shared/sql/db.ts'

export interface ReplicaLag {
  /** Runs that the replica does not know yet. */
  runs: number
  /** Between the creation of the newest run there and of the newest one here; infinite where the replica has none. */
  ms: number
}

const NEWEST = 'select rowid as number, created_ms from runs order by rowid desc limit 1'

interface Newest {
  number: number
  created_ms: number
}

/** How far a replica is behind, by the newest run of each side: one row of each, whatever their size. */
export async function replicaLag(primary: Db, replica: Db): Promise<ReplicaLag> {
  // The replica first: what is written between the two reads must not look as if it were ahead.
  const [there] = rowsOf<Newest>(await replica.execute(NEWEST))
  const [here] = rowsOf<Newest>(await primary.execute(NEWEST))
  if (here === undefined) return { runs: 0, ms: 0 }
  if (there === undefined) return { runs: here.number, ms: Number.POSITIVE_INFINITY }
  return {
    runs: Math.max(0, here.number - there.number),
    ms: Math.max(0, here.created_ms - there.created_ms),
  }
}
