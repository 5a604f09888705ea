import type { InStatement, ResultSet } from '@libsql/client/web'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { DamagedRowError, type Db, objectIn, type RowOf, readRow, readRows, rowsOf } from '../../shared/sql/db.ts'
import { isTooLarge } from '../../shared/sql/db-fault.ts'
import type { events, runData, runs } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import {
  claimAllStatement,
  claimStatement,
  holder,
  leaseNow,
  maxSlotsPerTenant,
  poisonedStatement,
  RATE_LIMIT,
  type RETURNED,
  RETURNING,
  SET_ASIDE_DAMAGED,
  type SharedStore,
  setAsideStatement,
} from './claim-statement.ts'
import type { Spent } from './journal/commit.ts'
import { type ChainHead, genesis, type JournalEntry, linkHash, readEvent } from './journal/event.ts'

/** A run in the hands of a new owner, with everything its loop needs to go on. */
export interface Claimed {
  id: string
  tenantId: string
  agentName: string
  agentId: string
  versionId: string
  epoch: number
  depth: number
  parentRunId?: string
  sessionId?: string
  /** The model step after which it ends. */
  onlyStep?: string
  input: Record<string, unknown>
  ranMs: number
  /** Failures in a row to get a single event further. */
  recoveries: number
  /** A code that ends the run as soon as it has an owner. */
  ending?: string
  createdMs: number
  isolation: string
  nodeId: string
  isolationUsed?: string
  /** What it had used when it was claimed. */
  spent: Spent
  head: ChainHead
  events: JournalEntry[]
  /** What was written of it is not what the store holds: nothing may go on by it, and it can only be ended. */
  damage?: DamagedRowError
}

/** Whose lease, and for how long. */
interface LeaseTerms {
  owner: string
  nowMs: number
  ttlMs: number
}

export interface ClaimOptions extends LeaseTerms {
  nodeId: string
  most: number
  /** How many runs this owner may execute at a time. */
  slots: number
  /** What this owner is executing: a clock that jumps ends its leases, and it must not take its own runs from itself. */
  held: readonly string[]
}

/** What else is written when these runs are set aside; each statement holds its own condition on the runs. */
export type SetAsideStatements = (ids: readonly string[]) => InStatement[]

type RunRow = RowOf<typeof runs>

/** What a claim returns of a run; a claimed run has its node. */
type ClaimedRow = Pick<RunRow, (typeof RETURNED)[number]> & { node_id: string; last_seq: number }

export interface Claim {
  claimed: Claimed[]
  nextDue: number | undefined
}

/** What the maker of a run knows of it, so that it is not read again: its input as it is stored before it is sealed, and how its journal begins. */
export interface NewlyMade {
  input: string
  events: readonly JournalEntry[]
}

/** What the store holds of a run. */
interface StoredRun extends NewlyMade {
  /** Of the last event, also where the events cannot be read. */
  head?: ChainHead | undefined
  damage?: DamagedRowError
}

export type LeaseStore = ReturnType<typeof leaseStore>

/** Says of a run in the hands of an owner that it waits for a rate limit until then, or no more. The run goes on where that cannot be stored. */
function waitShown(db: Db) {
  const sql = "update runs set parked = ?3, parked_until_ms = ?4 where id = ?1 and epoch = ?2 and status = 'running'"
  return async (id: string, epoch: number, untilMs: number | undefined, also: InStatement[]): Promise<void> => {
    const args = untilMs === undefined ? [null, null] : [RATE_LIMIT, untilMs]
    await db.write([{ sql, args: [id, epoch, ...args] }, ...also]).catch(() => undefined)
  }
}

/** Who owns which run, and until when. Every change is one statement, so two processes never both believe they won. */
export function leaseStore(db: Db, records: Records, sha256: Sha256, withNodes: boolean) {
  const shared: SharedStore = { withNodes, byServer: db.kind === 'remote' }
  const FOUND = poisonedStatement(shared)
  const ASIDE = setAsideStatement(shared)
  const NEXT_DUE = `select due_ms from runs where due_ms > ?1 and ${withNodes ? '?2 is not null' : '(node_id is null or node_id = ?2)'}
    order by due_ms limit 1`
  const deps = { db, records, sha256 }

  const claims = claimsOf(shared, NEXT_DUE)

  /** What came of those statements, with what each run needs to go on. */
  async function claimed(results: readonly ResultSet[], made: ReadonlyMap<string, NewlyMade>): Promise<Claim> {
    const [taken, due] = results
    return {
      claimed: await loaded(deps, rowsOf<ClaimedRow>(taken!), made),
      nextDue: rowsOf<{ due_ms: number }>(due!)[0]?.due_ms,
    }
  }

  /** Inputs of runs that have not started come with their claim, so that most need no further read. */
  async function claimBy(statements: readonly InStatement[], { owner, held }: ClaimOptions): Promise<Claim> {
    const inputsToo = { sql: INPUTS, args: [owner, JSON.stringify(held), SHORT_INPUT] }
    const results = await db.write([...statements, inputsToo])
    const toInput = (row: StoredInput): [string, NewlyMade] => [row.run_id, { input: inputOf(deps, row), events: [] }]
    // What cannot be read is read once more with the rest of its run.
    const inputs = readRows(rowsOf<StoredInput>(results[2]!), toInput, () => undefined)
    return claimed(results, new Map(inputs))
  }

  return {
    ...leaseReleases(db),
    ...setBackLeases(db),

    ...claims,
    claimed,

    /** A claim in a transaction of its own. */
    async claim(options: ClaimOptions): Promise<Claim> {
      const ofAll = claims.claimAllStatements(options)
      if (ofAll) {
        const all = await claimBy(ofAll, options)
        if (all.claimed.length > 0 || (all.nextDue ?? Infinity) > options.nowMs) return all
      }
      return claimBy(claims.claimStatements(options), options)
    },

    /** When the first of all runs is due, those included that are due already; `dueOf` reads its result. */
    firstDue: (nodeId: string): InStatement => ({ sql: NEXT_DUE, args: [-1, nodeId] }),

    /** Takes one run from its owner, to end it; undefined when it is terminal already. */
    async seize(
      id: string,
      { owner, nodeId, nowMs, ttlMs }: Omit<ClaimOptions, 'most' | 'slots' | 'held'>,
    ): Promise<Claimed | undefined> {
      const taken = await db.execute({
        sql: `update runs set status = 'running', owner = ?1, epoch = epoch + 1, due_ms = ${leaseNow(shared)} + ?3,
            node_id = ${holder(withNodes, '?5')}
          where id = ?4 and status in ('queued', 'running', 'waiting')
          ${RETURNING}`,
        args: [owner, nowMs, ttlMs, id, nodeId],
      })
      return (await loaded(deps, rowsOf<ClaimedRow>(taken), NOTHING_KNOWN))[0]
    },

    /** Moves the end of the leases on; answers the ids that are not this owner's any more. */
    async renew({ owner, nowMs, ttlMs }: LeaseTerms, ids: readonly string[]): Promise<string[]> {
      const kept = await db.execute({
        sql: `update runs set due_ms = ${leaseNow(shared)} + ?3
          where owner = ?1 and id in (select value from json_each(?4)) returning id`,
        args: [owner, nowMs, ttlMs, JSON.stringify(ids)],
      })
      const mine = new Set(rowsOf<Pick<RunRow, 'id'>>(kept).map(({ id }) => id))
      return ids.filter(id => !mine.has(id))
    },

    showWait: waitShown(db),

    /** Those of these runs that have ended under a later epoch. */
    async endedElsewhere(runs: readonly (readonly [id: string, epoch: number])[]): Promise<string[]> {
      const found = await db.execute({
        sql: `select r.id from json_each(?) as n join runs as r on r.id = n.value ->> 0
          where r.epoch > n.value ->> 1 and r.finished_ms is not null`,
        args: [JSON.stringify(runs)],
      })
      return rowsOf<Pick<RunRow, 'id'>>(found).map(({ id }) => id)
    },

    /** Sets aside what ends its owner whenever it is taken up; `beside` stands in the same commit. */
    async setAside(
      nodeId: string,
      nowMs: number,
      extraStatements: SetAsideStatements,
    ): Promise<{ id: string; agentName: string }[]> {
      const found = await db.execute({ sql: FOUND, args: [nowMs, nodeId] })
      const ids = rowsOf<Pick<RunRow, 'id'>>(found).map(({ id }) => id)
      if (ids.length === 0) return []
      const [aside] = await db.write([
        { sql: ASIDE, args: [nowMs, nodeId, JSON.stringify(ids)] },
        ...extraStatements(ids),
      ])
      return rowsOf<Pick<RunRow, 'id' | 'agent_name'>>(aside!).map(row => ({ id: row.id, agentName: row.agent_name }))
    },

    /** The same with one run that is damaged; false where it has another owner by now. */
    async setAsideDamaged(
      { id, epoch }: Pick<Claimed, 'id' | 'epoch'>,
      nowMs: number,
      extraStatements: SetAsideStatements,
    ): Promise<boolean> {
      const [aside] = await db.write([{ sql: SET_ASIDE_DAMAGED, args: [nowMs, id, epoch] }, ...extraStatements([id])])
      return aside?.rowsAffected === 1
    },

    /** The names in the leases, so that those of dead processes can be told. */
    async owners(): Promise<string[]> {
      const found = await db.execute('select distinct owner from runs where owner is not null')
      return rowsOf<{ owner: string }>(found).map(({ owner }) => owner)
    },
  }
}

/** The statements of a claim, for the end of a transaction. */
function claimsOf(shared: SharedStore, nextDue: string) {
  const CLAIM = claimStatement(shared)
  const CLAIM_ALL = claimAllStatement(shared)
  return {
    /** Takes runs that are due, by turns of tenants and agents, and looks when the next one will be. */
    claimStatements({ owner, nodeId, nowMs, ttlMs, most, slots, held }: ClaimOptions): InStatement[] {
      const args = [owner, nowMs, ttlMs, nodeId, most, JSON.stringify(held), maxSlotsPerTenant(slots), slots]
      return [
        { sql: CLAIM, args },
        { sql: nextDue, args: [nowMs, nodeId] },
      ]
    },

    /**
     * Takes all that is due, or nothing where turns have to be kept, and looks when the first is due then. Undefined where turns are cheap to keep,
     * or one tenant might get more than its share.
     */
    claimAllStatements({ owner, nodeId, nowMs, ttlMs, most, slots, held }: ClaimOptions): InStatement[] | undefined {
      const places = Math.min(most, maxSlotsPerTenant(slots) - held.length)
      if (!shared.byServer || places <= 0) return undefined
      return [
        { sql: CLAIM_ALL, args: [owner, nowMs, ttlMs, nodeId, places, JSON.stringify(held)] },
        { sql: nextDue, args: [-1, nodeId] },
      ]
    },
  }
}

/** What is put right after the clock was set back. */
function setBackLeases(db: Db) {
  return {
    /** Runs that wait for their turn and were made while the clock was ahead are due now. Their ids begin with the time that it said. */
    async queueByClock(nowMs: number): Promise<void> {
      // By its id, with a plus at the other time: of a clock that is right there is none.
      const where = "id > ?1 and +due_ms > ?2 and status = 'queued'"
      const args = [uuidv7(nowMs), nowMs]
      const found = await db.execute({ sql: `select 1 from runs where ${where} limit 1`, args })
      if (found.rows.length > 0) await db.execute({ sql: `update runs set due_ms = ?2 where ${where}`, args })
    },

    /** After the clock was set back: who waits for some time by what it said before waits for what was left of it then. */
    async waitByClock(nowMs: number): Promise<void> {
      const where = "due_ms > ?1 and updated_ms > ?1 and owner is null and parked in ('timer', 'signal')"
      const found = await db.execute({ sql: `select 1 from runs where ${where} limit 1`, args: [nowMs] })
      if (found.rows.length === 0) return
      const sql = `update runs set due_ms = ?1 + due_ms - updated_ms, updated_ms = ?1 where ${where}`
      await db.execute({ sql, args: [nowMs] })
    },
  }
}

/** How runs are let go of. */
function leaseReleases(db: Db) {
  return {
    /** Makes the runs of a process that is certainly gone due at once. */
    async release(owner: string): Promise<number> {
      const { rowsAffected } = await db.execute({ sql: 'update runs set due_ms = 0 where owner = ?', args: [owner] })
      return rowsAffected
    },

    /** As `release`, by the owner itself: that it stops is no fault of what it executed. */
    async handOver(owner: string): Promise<void> {
      await db.execute({
        sql: 'update runs set due_ms = 0, recoveries = max(recoveries - 1, 0) where owner = ?',
        args: [owner],
      })
    },

    /** Makes the runs due that stand under this name and are not among those that its process knows of. */
    async releaseOthers(owner: string, known: readonly string[]): Promise<void> {
      await db.execute({
        sql: 'update runs set due_ms = 0 where owner = ? and id not in (select value from json_each(?))',
        args: [owner, JSON.stringify(known)],
      })
    },

    /** Lets go of one run that stopped here without a word; `counts` is 1 where that may be the run's own fault. */
    async giveBack(id: string, epoch: number, counts: 0 | 1): Promise<void> {
      await db.execute({
        sql: `update runs set due_ms = 0, recoveries = recoveries + ?
          where id = ? and epoch = ? and status = 'running' and owner is not null`,
        args: [counts, id, epoch],
      })
    },
  }
}

interface LoadDeps {
  db: Db
  records: Records
  sha256: Sha256
}

type StoredInput = Pick<RowOf<typeof runData>, 'run_id' | 'input'>
type StoredEvent = RowOf<typeof events>

const NOTHING_KNOWN: ReadonlyMap<string, NewlyMade> = new Map()

/** What is longer is read outside of the transaction: the answer of a server to a claim has a bound. */
const SHORT_INPUT = 65_536

/** The inputs of runs that this owner has just taken. */
const INPUTS = `select run_id, input from run_data where length(input) <= ?3
  and run_id in (select id from runs where owner = ?1 and id not in (select value from json_each(?2)))`

/** What the new owner of each run needs: what is not known of it is read, its input and its journal. */
async function loaded(
  deps: LoadDeps,
  taken: readonly ClaimedRow[],
  known: ReadonlyMap<string, NewlyMade>,
): Promise<Claimed[]> {
  const isKnown = ({ id, last_seq }: ClaimedRow) =>
    (known.get(id)?.events.at(-1)?.seq ?? 0) === last_seq && known.has(id)
  const read = await storedRuns(
    deps,
    taken.filter(row => !isKnown(row)).map(({ id }) => id),
  )
  return taken.map(row => toClaimed(row, read.get(row.id) ?? known.get(row.id)!, deps.sha256))
}

/** Input and journal of these runs: at once where one answer of the store holds them. */
async function storedRuns(deps: LoadDeps, ids: readonly string[]): Promise<Map<string, StoredRun>> {
  if (ids.length === 0) return new Map()
  try {
    return await readRuns(deps, ids)
  } catch (error) {
    if (ids.length === 1 || !isTooLarge(error)) throw error
    const middle = ids.length >> 1
    const first = await storedRuns(deps, ids.slice(0, middle))
    return new Map([...first, ...(await storedRuns(deps, ids.slice(middle)))])
  }
}

async function readRuns(deps: LoadDeps, ids: readonly string[]): Promise<Map<string, StoredRun>> {
  const { db } = deps
  const args = [JSON.stringify(ids)]
  const [data, stored] = await db.read([
    { sql: 'select run_id, input from run_data where run_id in (select value from json_each(?))', args },
    {
      sql: 'select run_id, hash, body, seq from events where run_id in (select value from json_each(?)) order by run_id, seq',
      args,
    },
  ])
  const inputs = new Map(rowsOf<StoredInput>(data!).map(row => [row.run_id, row]))
  const journals = Map.groupBy(rowsOf<StoredEvent>(stored!), row => row.run_id)
  return new Map(ids.map(id => [id, storedRun(deps, id, inputs.get(id), journals.get(id) ?? [])]))
}

/** A run that is damaged holds up none of those that were taken with it. */
function storedRun(
  deps: LoadDeps,
  id: string,
  input: StoredInput | undefined,
  journal: readonly StoredEvent[],
): StoredRun {
  const last = journal.at(-1)
  try {
    if (!input) throw new DamagedRowError(`the input of run ${id}`, { cause: new Error('it is gone') })
    return { input: inputOf(deps, input), events: journalOf(deps, id, journal) }
  } catch (error) {
    if (!(error instanceof DamagedRowError)) throw error
    return { input: '{}', events: [], head: last && { seq: Number(last.seq), hash: last.hash }, damage: error }
  }
}

function inputOf({ records }: LoadDeps, row: StoredInput): string {
  return readRow(`the input of run ${row.run_id}`, row, ({ run_id, input }) => {
    const text = records.open(input, { record: run_id, field: 'input' })
    objectIn(text)
    return text
  })
}

/** Each event is held against its hash, and with it against all before it: what was edited or removed is not gone on by. */
function journalOf({ records, sha256 }: LoadDeps, id: string, journal: readonly StoredEvent[]): JournalEntry[] {
  let { hash: head } = genesis(id, sha256)
  return journal.map((row, at) =>
    readRow(`event ${at + 1} of run ${id}`, row, ({ seq, hash, body }) => {
      const text = records.open(body, { record: id, field: `event ${seq}` })
      head = linkHash(head, text, sha256)
      if (seq !== at + 1 || hash !== head) throw new Error('it is not what was recorded')
      return readEvent(text, hash)
    }),
  )
}

function toClaimed(row: ClaimedRow, { input, events, head, damage }: StoredRun, sha256: Sha256): Claimed {
  const { id } = row
  const last = events.at(-1) ?? head
  const wrong = damage ?? damageOf(row)
  return {
    id,
    tenantId: row.tenant_id,
    agentName: row.agent_name,
    agentId: row.agent_id,
    versionId: row.version_id,
    epoch: row.epoch,
    depth: row.depth,
    ...(row.parent_run_id !== null && { parentRunId: row.parent_run_id }),
    ...(row.session_id !== null && { sessionId: row.session_id }),
    ...(row.only_step !== null && { onlyStep: row.only_step }),
    ...(row.ending !== null && { ending: row.ending }),
    input: readJson(input) as Record<string, unknown>,
    ranMs: row.ran_ms,
    recoveries: row.recoveries,
    createdMs: row.created_ms,
    isolation: row.isolation,
    nodeId: row.node_id,
    ...(row.isolation_used !== null && { isolationUsed: row.isolation_used }),
    spent: { tokensIn: row.tokens_in, tokensOut: row.tokens_out, costNano: row.cost_nano },
    head: last ? { seq: last.seq, hash: last.hash } : genesis(id, sha256),
    events: [...events],
    ...(wrong && { damage: wrong }),
  }
}

function damageOf(row: ClaimedRow): DamagedRowError | undefined {
  try {
    readRow(`run ${row.id}`, row, () => undefined)
    const { id, event_count: known, last_seq: last } = row
    // What was recorded behind it is gone.
    if (known !== null && last < known) {
      const cause = new Error(`it ends at event ${last} of ${known}`)
      throw new DamagedRowError(`the journal of run ${id}`, { cause })
    }
    return undefined
  } catch (error) {
    return error as DamagedRowError
  }
}
