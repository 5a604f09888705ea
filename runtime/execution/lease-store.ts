import type { InStatement } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { events, runData, runs } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import {
  asideStatement,
  claimStatement,
  holder,
  mostOfOne,
  poisonedStatement,
  type RETURNED,
  RETURNING,
} from './claim-statement.ts'
import type { Spent } from './journal/commit.ts'
import { type ChainHead, genesis, type JournalEntry, readEvent } from './journal/event.ts'

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
}

export interface ClaimOptions {
  owner: string
  nodeId: string
  nowMs: number
  ttlMs: number
  most: number
  /** How many runs this owner may execute at a time. */
  slots: number
  /** What this owner is executing: a clock that jumps ends its leases, and it must not take its own runs from itself. */
  held: readonly string[]
}

/** What else is written when these runs are set aside; each statement holds its own condition on the runs. */
export type BesideAside = (ids: readonly string[]) => InStatement[]

type RunRow = RowOf<typeof runs>

/** What a claim returns of a run; a claimed run has its node. */
type ClaimedRow = Pick<RunRow, (typeof RETURNED)[number]> & { node_id: string }

interface Claim {
  claimed: Claimed[]
  nextDue: number | undefined
}

export type LeaseStore = ReturnType<typeof leaseStore>

/** Who owns which run, and until when. Every change is one statement, so two processes never both believe they won. */
export function leaseStore(db: Db, records: Records, sha256: Sha256, shared = false) {
  const CLAIM = claimStatement(shared)
  const FOUND = poisonedStatement(shared)
  const ASIDE = asideStatement(shared)
  const NEXT_DUE = `select due_ms from runs where due_ms > ?1 and ${shared ? '?2 is not null' : '(node_id is null or node_id = ?2)'}
    order by due_ms limit 1`
  return {
    ...leaseReleases(db),

    /** Takes runs that are due, by turns of tenants and agents; `nextDue` is when the next one will be. */
    async claim({ owner, nodeId, nowMs, ttlMs, most, slots, held }: ClaimOptions): Promise<Claim> {
      const args = [owner, nowMs, ttlMs, nodeId, most, JSON.stringify(held), mostOfOne(slots), slots]
      const [taken, due] = await db.write([
        { sql: CLAIM, args },
        { sql: NEXT_DUE, args: [nowMs, nodeId] },
      ])
      const claimed = await load(db, records, sha256, rowsOf<ClaimedRow>(taken!))
      return { claimed, nextDue: rowsOf<{ due_ms: number }>(due!)[0]?.due_ms }
    },

    /** Takes one run from its owner, to end it; undefined when it is terminal already. */
    async seize(
      id: string,
      { owner, nodeId, nowMs, ttlMs }: Omit<ClaimOptions, 'most' | 'slots' | 'held'>,
    ): Promise<Claimed | undefined> {
      const taken = await db.execute({
        sql: `update runs set status = 'running', owner = ?1, epoch = epoch + 1, due_ms = ?2 + ?3,
            node_id = ${holder(shared, '?5')}
          where id = ?4 and status in ('queued', 'running', 'waiting')
          ${RETURNING}`,
        args: [owner, nowMs, ttlMs, id, nodeId],
      })
      return (await load(db, records, sha256, rowsOf<ClaimedRow>(taken)))[0]
    },

    /** Moves the end of the leases on; answers the ids that are not this owner's any more. */
    async renew(owner: string, ids: readonly string[], dueMs: number): Promise<string[]> {
      const kept = await db.execute({
        sql: `update runs set due_ms = ? where owner = ? and id in (select value from json_each(?)) returning id`,
        args: [dueMs, owner, JSON.stringify(ids)],
      })
      const mine = new Set(rowsOf<Pick<RunRow, 'id'>>(kept).map(({ id }) => id))
      return ids.filter(id => !mine.has(id))
    },

    /** Sets aside what ends its owner whenever it is taken up; `beside` stands in the same commit. */
    async setAside(
      nodeId: string,
      nowMs: number,
      extraStatements: BesideAside,
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

    /** The names in the leases, so that those of dead processes can be told. */
    async owners(): Promise<string[]> {
      const found = await db.execute('select distinct owner from runs where owner is not null')
      return rowsOf<{ owner: string }>(found).map(({ owner }) => owner)
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

    /** Lets go of one run that stopped here without a word. */
    async giveBack(id: string, epoch: number): Promise<void> {
      await db.execute({
        sql: "update runs set due_ms = 0 where id = ? and epoch = ? and status = 'running' and owner is not null",
        args: [id, epoch],
      })
    },
  }
}

/** Reads what the new owner of each run needs, from its input and its journal. */
async function load(db: Db, records: Records, sha256: Sha256, taken: readonly ClaimedRow[]): Promise<Claimed[]> {
  if (taken.length === 0) return []
  const ids = JSON.stringify(taken.map(row => row.id))
  const [data, stored] = await db.read([
    { sql: 'select run_id, input from run_data where run_id in (select value from json_each(?))', args: [ids] },
    {
      sql: 'select run_id, hash, body, seq from events where run_id in (select value from json_each(?)) order by run_id, seq',
      args: [ids],
    },
  ])
  const inputs = new Map(
    rowsOf<Pick<RowOf<typeof runData>, 'run_id' | 'input'>>(data!).map(row => [row.run_id, row.input]),
  )
  const journals = Map.groupBy(rowsOf<RowOf<typeof events>>(stored!), row => row.run_id)
  return taken.map(row => {
    const { id } = row
    const entries = (journals.get(id) ?? []).map(({ seq, hash, body }) =>
      readEvent(records.open(body, { record: id, field: `event ${seq}` }), hash),
    )
    const last = entries.at(-1)
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
      ...(row.ending !== null && { ending: row.ending }),
      input: readJson(records.open(inputs.get(id) ?? '{}', { record: id, field: 'input' })) as Record<string, unknown>,
      ranMs: row.ran_ms,
      recoveries: row.recoveries,
      createdMs: row.created_ms,
      isolation: row.isolation,
      nodeId: row.node_id,
      ...(row.isolation_used !== null && { isolationUsed: row.isolation_used }),
      spent: { tokensIn: row.tokens_in, tokensOut: row.tokens_out, costNano: row.cost_nano },
      head: last ? { seq: last.seq, hash: last.hash } : genesis(id, sha256),
      events: entries,
    }
  })
}
