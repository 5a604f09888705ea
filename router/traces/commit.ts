import type { InStatement } from '@libsql/client/web'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { dbFault, retryBusy } from '../../shared/sql/db-fault.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { traces } from '../schema/tables.ts'
import { type ChainHead, sealedRun, traceText } from './canonical-trace.ts'
import { type ChainState, emptyChain, loadChains } from './chains.ts'
import type { LeaseTerm, writerLease } from './lease.ts'
import { dropDay, type LateDay, lateDays } from './savings-days.ts'
import { type Cell, rowColumns, rowOf } from './trace-row.ts'

export interface Committed {
  written: number
  /** Already in the store, or twice in the batch. */
  repeated: number
  /** No record of version 1: never written. */
  refused: { record: UnsealedTrace; error: unknown }[]
  tenants: Set<string>
  /** Days whose sums were dropped, as a record was added to them. */
  late: LateDay[]
}

export interface CommitOptions {
  db: Db
  lease: ReturnType<typeof writerLease>
  sha256: Sha256
  clock: Pick<Clock, 'now'>
  /** A chain ends before the last record that the store had confirmed: it was restored, or its server lost its last commits. */
  setBack?: ((tenant: string, from: number, to: number) => void) | undefined
}

/**
 * The end of every chain, in memory, and the one way to add to it. What is held here is thrown away after anything unclear (a failed
 * statement, a lost lease) and read again; records are then looked up before they are sealed, so none is written twice.
 */
export function chainCommitter({ db, lease, sha256, clock, setBack = () => {} }: CommitOptions) {
  let chains: Map<string, ChainState> | undefined
  let epoch: number | undefined
  let unsure = true
  /** The last record of each chain that the store had confirmed. */
  const confirmed = new Map<string, number>()

  async function open(): Promise<LeaseTerm | undefined> {
    const term = await lease.hold()
    if (term === undefined) {
      forget()
      return undefined
    }
    if (chains === undefined || epoch !== term.epoch) {
      unsure = true
      chains = await loadChains(db)
      for (const [tenant, seq] of confirmed) {
        const now = chains.get(tenant)?.head?.seq ?? -1
        if (now < seq) setBack(tenant, seq, now)
      }
      confirmed.clear()
      epoch = term.epoch
    }
    return term
  }

  function forget() {
    chains = undefined
    unsure = true
  }

  async function attempt(records: readonly UnsealedTrace[], lookUp: boolean): Promise<Committed | undefined> {
    const term = await open()
    if (term === undefined) return undefined
    const known = lookUp || unsure ? await storedIds(db, records) : new Set<string>()
    const { rows, run, heads, behind, repeated, refused } = sealAll(
      records,
      known,
      tenant => chains?.get(tenant)?.head,
      sha256,
    )
    const late = lateDays(records, clock.now())
    if (rows.length > 0) {
      const statement = insertBatch(rows, run.bytes(), term, behind)
      const insert = async () => {
        if (late.length === 0) return db.execute(statement)
        const [inserted] = await db.write([statement, ...late.map(day => dropDay(day, term))])
        return inserted!
      }
      const { rowsAffected } = await retryBusy(insert, { retries: 2 })
      if (rowsAffected !== rows.length) {
        lease.lost()
        forget()
        return undefined
      }
    }
    for (const [tenant, head] of heads) {
      chainOf(tenant).head = head
      if (head !== undefined) confirmed.set(tenant, head.seq)
    }
    unsure = false
    return { written: rows.length, repeated, refused, tenants: new Set(heads.keys()), late }
  }

  function chainOf(tenant: string): ChainState {
    const known = chains?.get(tenant)
    if (known !== undefined) return known
    const made = emptyChain()
    chains?.set(tenant, made)
    return made
  }

  return {
    /** Nothing when another process holds the lease; throws when the store failed. Either way the same records may be given again. */
    async commit(records: readonly UnsealedTrace[], { lookUp = false } = {}): Promise<Committed | undefined> {
      try {
        return await attempt(records, lookUp)
      } catch (error) {
        forget()
        // A record that is already there, or a place that is taken: nothing was written, and now both are looked up.
        if (dbFault(error) !== 'statement') throw error
      }
      try {
        return await attempt(records, true)
      } catch (error) {
        forget()
        throw error
      }
    },
    open,
    forget,
    /** As of the last `open`. */
    chains: (): ReadonlyMap<string, ChainState> => chains ?? new Map(),
    chainOf,
  }
}

/** Seals each record behind the one before it in its chain, the first behind the head of that. */
function sealAll(
  records: readonly UnsealedTrace[],
  known: ReadonlySet<string>,
  headOf: (tenant: string) => ChainHead | undefined,
  sha256: Sha256,
) {
  const heads = new Map<string, ChainHead | undefined>()
  const seen = new Set<string>(known)
  const rows: SealedRow[] = []
  const run = sealedRun(sha256)
  /** Of each tenant that has records, the last one. */
  const behind: Behind[] = []
  const refused: Committed['refused'] = []
  let repeated = 0
  for (const record of records) {
    if (seen.has(record.trace_id)) {
      repeated++
      continue
    }
    try {
      const { tenant_id } = record
      const previous = heads.has(tenant_id) ? heads.get(tenant_id) : headOf(tenant_id)
      const cells = rowOf(record, previous === undefined ? 0 : previous.seq + 1)
      const { seq, hash, at, bytes } = run.add(traceText(record), previous)
      if (!heads.has(tenant_id) && previous !== undefined) behind.push([tenant_id, previous.seq])
      rows.push({ cells, at, bytes })
      heads.set(tenant_id, { seq, hash })
      seen.add(record.trace_id)
    } catch (error) {
      refused.push({ record, error })
    }
  }
  return { rows, run, heads, behind, repeated, refused }
}

async function storedIds(db: Db, records: readonly UnsealedTrace[]): Promise<Set<string>> {
  const ids = JSON.stringify(records.map(({ trace_id }) => trace_id))
  const answer = await db.execute({
    sql: 'select trace_id from traces where trace_id in (select value from json_each(?))',
    args: [ids],
  })
  return new Set(rowsOf<Pick<RowOf<typeof traces>, 'trace_id'>>(answer).map(row => row.trace_id))
}

/** A tenant, and the place of the last record of its chain. */
type Behind = [tenant: string, seq: number]

interface SealedRow {
  cells: Cell[]
  /** Where its bytes are in the run. */
  at: number
  bytes: number
}

// Like insertRows, one statement for any number of rows; but the bodies travel beside the JSON, as one run of bytes: JSON inside JSON has
// every quote escaped, parsed and unescaped again, which took twice the time of the whole insert (measured at 256 rows of 1.2 kB).
// json_each hands each row over as text, jsonb() makes it cheap to take apart. The lease and the ends of the chains are asked in the statement that
// writes: a server that went back in time would get a hole. A chain without records was pruned.
const sql = [
  'with rows as materialized (select jsonb(value) as cells from json_each(?1))',
  `insert into traces (${rowColumns.join(', ')}, body)`,
  `select ${rowColumns.map((_, index) => `cells ->> ${index}`).join(', ')},`,
  `cast(substr(?2, cells ->> ${rowColumns.length}, cells ->> ${rowColumns.length + 1}) as text) from rows`,
  "where exists (select 1 from writer_lease where name = 'traces' and holder = ?3 and epoch = ?4)",
  'and not exists (select 1 from json_each(?5) as behind',
  'where (select max(seq) from traces where tenant_id = behind.value ->> 0) <> behind.value ->> 1)',
].join(' ')

/**
 * Inserts all of the rows, or none: none where another process took the lease or a chain does not end where it did, and none with an error where a row is already there.
 * Skipping single rows would leave holes in the chain.
 */
export function insertBatch(
  rows: readonly SealedRow[],
  run: Uint8Array<ArrayBuffer>,
  { holder, epoch }: LeaseTerm,
  behind: readonly Behind[] = [],
): InStatement {
  // SQL counts from 1.
  const cells = rows.map(row => [...row.cells, row.at + 1, row.bytes])
  return { sql, args: [JSON.stringify(cells), run, holder, epoch, JSON.stringify(behind)] }
}
