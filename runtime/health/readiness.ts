import { type Db, rowsOf } from '../../shared/sql/db.ts'
import type { Readyz } from '../../shared/wire/runtime/health.ts'

export interface ReadinessDeps {
  db: Db
  ready: () => Promise<void>
  /** Whether the master key is the one of the store; undefined where there is none. Once it was, it is not asked again. */
  checkKey: (() => Promise<void>) | undefined
  phase: () => Readyz['status']
}

/** What /readyz says. */
export function readinessOf({ db, ready, checkKey, phase }: ReadinessDeps): () => Promise<Readyz> {
  let keyChecked = false
  async function key() {
    await ready()
    if (!keyChecked) await checkKey?.()
    keyChecked = true
  }
  async function store() {
    await db.execute('select 1')
    await db.writable()
  }
  return async () => {
    const [database, migrations, masterKey] = await Promise.all([store, ready, key].map(outcome))
    const checks = { database: database!, migrations: migrations!, ...(checkKey && { masterKey: masterKey! }) }
    const status = Object.values(checks).some(check => check !== 'ok') ? 'failing' : phase()
    return { status, checks }
  }
}

/** A store that stands still is waited for longer than that elsewhere, and longer than probes wait. */
const LONGEST_MS = 4000

/** `ok`, or what went wrong in one sentence. */
async function outcome(check: () => Promise<unknown>): Promise<string> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${LONGEST_MS / 1000} s`)), LONGEST_MS)
  })
  try {
    await Promise.race([check(), late])
    return 'ok'
  } catch (error) {
    return error instanceof Error ? error.message : 'failed'
  } finally {
    clearTimeout(timer)
  }
}

interface ReplicaLag {
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
