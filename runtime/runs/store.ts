import type { InStatement, ResultSet } from '@libsql/client/web'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { retryBusy } from '../../shared/sql/db-fault.ts'
import { groupCommit } from '../../shared/sql/group-commit.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import type { Run, RunListQuery } from '../../shared/wire/runtime/run.ts'
import type { JoinedClaim } from '../execution/claim-loop.ts'
import { resumption } from '../execution/claim-statement.ts'
import type { SealedEvent } from '../execution/journal/event.ts'
import { type JournalEntry, readEvent } from '../execution/journal/event.ts'
import type { NewlyMade } from '../execution/lease-store.ts'
import { type PageOf, readPage } from '../http/page.ts'
import type { blobs, events, runs } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import { countStatement, listStatement, placeOfRow } from './run-list.ts'
import { DATA_COLUMNS, type DataRow, RUN_COLUMNS, type RunRow, TITLE_COLUMNS, toRun } from './run-row.ts'
import { keptAbove } from './run-tree.ts'
import type { SealedInput } from './sealed-input.ts'

/** Of what is stored; a longer entry of a journal is a page of its own. */
const PAGE_BYTES = 1024 * 1024

/** Texts of the runs of one page, in bytes: a run may have 8 MiB, and a page a hundred runs. */
const MOST_OF_PAGE = 8 * 1024 * 1024

/** The texts of a page: of a run that so many bytes stand before, not a text but that it is beyond the page. */
const TEXTS_OF_PAGE = `select run_id, iif(before > ?2, '', input) as input, iif(before > ?2, null, output) as output, error_message,
    before > ?2 as is_beyond
  from (select id, sum(bytes) over (order by at) - bytes as before
    from (select d.run_id as id, key as at, octet_length(input) + coalesce(octet_length(output), 0) as bytes
      from json_each(?1) join run_data as d on d.run_id = value))
  join run_data on run_id = id`

/** Texts whose reading keeps others waiting. */
function areLong(texts: readonly DataRow[]): boolean {
  return texts.reduce((sum, { input, output }) => sum + (input?.length ?? 0) + (output?.length ?? 0), 0) > PAGE_BYTES
}

export interface NewRun {
  id: string
  tenantId: string
  agentName: string
  agentId: string
  /** Of its agent, where they are known: they say where it is executed. */
  agentLabels?: Readonly<Record<string, string>> | undefined
  versionId: string
  createdMs: number
  /** From when on it may be taken; left out: since it was made. */
  dueMs?: number
  /** The canonical text of the input. */
  input: string
  labels: string
  /** The input of its schedule where only a pool of nodes can read it: `input` says nothing then. */
  sealedInput?: SealedInput | undefined
  trigger: { kind: Run['trigger']['kind']; ref?: string }
  isolation: string
  /** The calendar day it counts for. */
  day: string
  budgetExceeded?: boolean
  /** Its agent had no budget when it was admitted. */
  unlimited?: boolean | undefined
  parentRunId?: string
  depth?: number
  sessionId?: string
  scheduleId?: string
  forkedFrom?: { runId: string; stepId: string }
  /** The model step after which it ends. */
  onlyStep?: string
  /** The beginning of its journal, where it does not start empty. */
  events?: readonly SealedEvent[]
  /** A node will execute it, this one where it is known: no process here may claim it, and its input is not kept here. */
  elsewhere?: { nodeId?: string | undefined }
  /** Statements of others that must hold with the creation or not at all. */
  also?: readonly InStatement[]
}

const RUN = {
  id: 'text',
  tenant_id: 'text',
  agent_name: 'text',
  agent_id: 'text',
  version_id: 'text',
  status: 'text',
  created_ms: 'integer',
  updated_ms: 'integer',
  due_ms: 'integer',
  labels: 'text',
  trigger_kind: 'text',
  trigger_ref: 'text',
  parent_run_id: 'text',
  depth: 'integer',
  session_id: 'text',
  schedule_id: 'text',
  forked_run: 'text',
  forked_step: 'text',
  only_step: 'text',
  isolation: 'text',
  budget_exceeded: 'integer',
  epoch: 'integer',
  node_id: 'text',
} as const
const DATA = { run_id: 'text', input: 'text' } as const
const after = 'on conflict do nothing'
const always = { runs: insertRows('runs', RUN, { after }), data: insertRows('run_data', DATA, { after }) }
/** Only the runs whose id stands in the window of their schedule: what another instance took is not created here as well. */
const ofWindows = {
  runs: insertRows('runs', RUN, { after, where: 'exists (select 1 from schedule_fires where run_id = new.id)' }),
  data: insertRows('run_data', DATA, { after, where: 'exists (select 1 from runs where id = new.run_id)' }),
}
const countRuns = insertRows(
  'usage_days',
  { agent_id: 'text', day: 'text', model: 'text', tenant_id: 'text', agent_name: 'text', runs: 'integer' },
  {
    given: { run_id: 'text' },
    where: 'exists (select 1 from runs where id = new.run_id)',
    after: 'on conflict (agent_id, day, model) do update set runs = runs + 1',
  },
)
const insertEvents = insertRows('events', { run_id: 'text', seq: 'integer', hash: 'text', body: 'text' })

export type RunStore = ReturnType<typeof runStore>

/** How a new run comes to an engine of this process. */
export interface NewRunClaims {
  /** Takes runs in the transaction that makes them; undefined where this process can take none now. */
  beside(): JoinedClaim | undefined
  /** Looks for what was made due. */
  wake(): void
}

const noClaims: NewRunClaims = { beside: () => undefined, wake: () => undefined }

export function runStore(db: Db, records: Records, claims = noClaims) {
  const creations = groupCommit<NewRun, NewRun>({
    write: async runs => {
      await writeClaimed(db, claims, runs, creation(records, runs))
      return [...runs]
    },
    weigh: run => run.input.length,
  })

  return {
    ...journalReads(db, records),
    ...waitingRuns(db, records),

    /** Resolves with what was stored when that is durable. Runs that are created at the same moment share a commit. */
    create: (run: NewRun): Promise<NewRun> => creations.append(run),

    /**
     * Creates the runs of those windows that `take` takes, all in one transaction, and answers the results of `take`.
     * `settle` comes last.
     */
    async createForWindows(
      runs: readonly NewRun[],
      { take, settle }: { take: readonly InStatement[]; settle: readonly InStatement[] },
    ): Promise<ResultSet[]> {
      const created = runs.length === 0 ? [] : creation(records, runs, ofWindows)
      const results = await retryBusy(() => writeClaimed(db, claims, runs, [...take, ...created, ...settle]))
      return results.slice(0, take.length)
    },

    async get(id: string): Promise<Run | undefined> {
      const [found, data] = await db.read([
        { sql: `select ${RUN_COLUMNS} from runs where id = ?`, args: [id] },
        { sql: `select ${DATA_COLUMNS} from run_data where run_id = ?`, args: [id] },
      ])
      const [row] = rowsOf<RunRow>(found!)
      const texts = rowsOf<DataRow>(data!)
      if (areLong(texts)) await pageTurn()
      return row && toRun(row, records, texts[0])
    },

    async summary(id: string): Promise<Run | undefined> {
      const [row] = rowsOf<RunRow>(
        await db.execute({ sql: `select ${RUN_COLUMNS} from runs where id = ?`, args: [id] }),
      )
      return row && toRun(row)
    },

    async list(tenantId: string, query: RunListQuery, page: PageOf): Promise<Run[]> {
      const rows = rowsOf<RunRow>(await db.execute(listStatement(tenantId, query, page)))
      const place = (row: RunRow) => placeOfRow(row, query.sort)
      if (query.fields === 'summary') return readPage(page, rows, row => toRun(row), place)
      const ids = JSON.stringify(rows.map(row => row.id))
      if (query.fields === undefined) await pageTurn()
      const data = await db.execute(
        query.fields === 'title'
          ? {
              sql: `select ${TITLE_COLUMNS} from run_data where run_id in (select value from json_each(?))`,
              args: [ids],
            }
          : { sql: TEXTS_OF_PAGE, args: [ids, MOST_OF_PAGE] },
      )
      const texts = rowsOf<DataRow & { is_beyond?: number }>(data)
      const byRun = new Map(texts.map(row => [row.run_id, row]))
      const beyond = rows.findIndex(row => byRun.get(row.id)?.is_beyond === 1)
      if (beyond >= 0) page.endsEarly?.()
      const fit = beyond < 0 ? rows : rows.slice(0, beyond)
      const read = readPage(page, fit, row => toRun(row, records, byRun.get(row.id)), place)
      // The answer is written in a turn of its own.
      if (areLong(texts)) await pageTurn()
      return read
    },

    /** How many runs a list has, up to one more than MOST_COUNTED. */
    async count(tenantId: string, query: RunListQuery): Promise<number> {
      return rowsOf<{ runs: number }>(await db.execute(countStatement(tenantId, query)))[0]?.runs ?? 0
    },

    /** The runs of a conversation and all below them, the lowest first. */
    async ofSession(sessionId: string): Promise<readonly Pick<Run, 'id' | 'status'>[]> {
      const found = await db.execute({
        sql: `with recursive t (id, status, depth) as (
            select id, status, depth from runs where session_id = ?
            union select r.id, r.status, r.depth from t join runs as r on r.parent_run_id = t.id)
          select id, status from t order by depth desc`,
        args: [sessionId],
      })
      return rowsOf<Pick<RunRow, 'id' | 'status'>>(found)
    },

    /** Removes a terminal run with its journal and texts; undefined when it is not terminal. */
    async remove(id: string): Promise<boolean> {
      const done = "(select id from runs where id = ?1 and status in ('succeeded', 'failed', 'cancelled'))"
      const results = await db.write([
        keptAbove(id),
        { sql: `delete from events where run_id in ${done}`, args: [id] },
        { sql: `delete from blobs where run_id in ${done}`, args: [id] },
        { sql: `delete from approvals where run_id in ${done}`, args: [id] },
        { sql: `delete from signals where run_id in ${done}`, args: [id] },
        { sql: `delete from run_data where run_id in ${done}`, args: [id] },
        { sql: `delete from turns where run_id in ${done}`, args: [id] },
        { sql: `delete from runs where id in ${done}`, args: [id] },
      ])
      return results.at(-1)?.rowsAffected === 1
    },

    close: () => creations.close(),
  }
}

/** A run where a reader of its stream begins. */
export interface StreamOpening extends Pick<Run, 'tenantId' | 'status'> {
  /** Absent where the journal is elsewhere. */
  page?: JournalPage
}

/** Part of a journal, in order. One of long entries ends before its limit, so that a reader of a long journal holds little of it. */
export interface JournalPage {
  entries: JournalEntry[]
  isLast: boolean
}

/** Where such a page ends before its limit; null where it does not. */
const CUT = `with cut (seq) as (
  select min(seq) from (select seq, sum(bytes) over (order by seq) as upto
    from (select seq, octet_length(body) as bytes from events where run_id = ?1 and seq >= ?2 order by seq limit ?3))
  where upto > ${PAGE_BYTES} and seq > ?2)`

const EVENTS = 'select hash, body, seq from events where run_id = ? and seq >= ? order by seq limit ?'

/** A run with that part of its journal, or with one row of nothing: a statement is of one moment, and costs a server less than a transaction. */
const OPENING = `${CUT} select tenant_id, status, hash, body, e.seq as seq, cut.seq as cut from runs cross join cut
  left join events as e on e.run_id = id and e.seq >= ?2 and (cut.seq is null or e.seq < cut.seq) where id = ?1
  order by e.seq limit ?3`
export const JOURNAL_PAGE = `${CUT} select hash, body, e.seq as seq, cut.seq as cut from cut
  cross join events as e on e.run_id = ?1 and e.seq >= ?2 and (cut.seq is null or e.seq < cut.seq) order by e.seq limit ?3`
type Opening = Pick<RowOf<typeof runs>, 'tenant_id' | 'status'> &
  (StoredEvent | Record<keyof StoredEvent, null>) & {
    cut: number | null
  }

type StoredEvent = Pick<RowOf<typeof events>, 'hash' | 'body' | 'seq'>

function entriesOf(records: Records, runId: string, found: ResultSet): JournalEntry[] {
  return rowsOf<StoredEvent>(found).map(row => entryOf(records, runId, row))
}

function entryOf(records: Records, runId: string, { hash, body, seq }: StoredEvent): JournalEntry {
  return readEvent(records.open(body, { record: runId, field: `event ${seq}` }), hash)
}

/** A run as those see it who follow its journal. */
function journalReads(db: Db, records: Records) {
  return {
    /** Part of a journal, in order. */
    async events(runId: string, fromSeq: number, most: number): Promise<JournalEntry[]> {
      return entriesOf(records, runId, await db.execute({ sql: EVENTS, args: [runId, fromSeq, most] }))
    },

    /** At most so many of a journal, from one on. */
    async page(runId: string, fromSeq: number, most: number): Promise<JournalPage> {
      const found = await db.execute({ sql: JOURNAL_PAGE, args: [runId, fromSeq, most] })
      const rows = rowsOf<StoredEvent & { cut: number | null }>(found)
      const isLast = rows.length < most && (rows[0]?.cut ?? null) === null
      // A file is read on this thread, so who reads page after page lets others have their turn in between.
      if (!isLast) await pageTurn()
      return { entries: rows.map(row => entryOf(records, runId, row)), isLast }
    },

    /** What the stream of a run begins with: whose it is, how it stands, and that part of its journal, all of one moment. */
    async streamOpening(runId: string, fromSeq: number, most: number): Promise<StreamOpening | undefined> {
      const rows = rowsOf<Opening>(await db.execute({ sql: OPENING, args: [runId, fromSeq, most] }))
      const entries = rows.flatMap(row => (row.seq === null ? [] : entryOf(records, runId, row)))
      const [first] = rows
      if (first === undefined) return undefined
      const isLast = rows.length < most && first.cut === null
      if (!isLast) await pageTurn()
      return { tenantId: first.tenant_id, status: first.status, page: { entries, isLast } }
    },

    /** An output that stands beside the journal, by its digest. */
    async blob(runId: string, sha256: string): Promise<Uint8Array | undefined> {
      const found = await db.execute({
        sql: 'select content, sealed from blobs where run_id = ? and sha256 = ?',
        args: [runId, sha256.toWellFormed()],
      })
      const [row] = rowsOf<Pick<RowOf<typeof blobs>, 'content' | 'sealed'>>(found)
      return row && records.openBytes(new Uint8Array(row.content), row.sealed, `blob ${sha256}`)
    },

    /** Status and how far recoveries had come: what a step list and a stream need besides the events. */
    async progress(runId: string): Promise<{ status: Run['status']; recoverySeq: number } | undefined> {
      const found = await db.execute({ sql: 'select status, recovery_seq from runs where id = ?', args: [runId] })
      const [row] = rowsOf<Pick<RowOf<typeof runs>, 'status' | 'recovery_seq'>>(found)
      return row && { status: row.status, recoverySeq: row.recovery_seq }
    },

    async children(parentId: string): Promise<string[]> {
      const found = await db.execute({
        sql: `select id from runs where parent_run_id = ? and status in ('queued', 'running', 'waiting')`,
        args: [parentId],
      })
      return rowsOf<{ id: string }>(found).map(({ id }) => id)
    },
  }
}

/** What a run that waits goes on by. */
function waitingRuns(db: Db, records: Records) {
  return {
    /** Lets a run go on that was set aside. */
    async resume(runId: string, nowMs: number): Promise<void> {
      await db.execute(resumption(runId, nowMs))
    },

    /** Keeps a signal until the run takes it; `full` when a hundred wait already. */
    async signal(runId: string, signal: { id: string; name: string; value: string; atMs: number }) {
      const value = records.seal(signal.value, { record: runId, field: `signal ${signal.id}` })
      const [inserted] = await db.write([
        {
          sql: `insert into signals (id, run_id, name, value, created_ms) select ?1, ?2, ?3, ?4, ?5
            where exists (select 1 from runs where id = ?2 and status in ('queued', 'running', 'waiting'))
              and (select count(*) from signals where run_id = ?2) < 100`,
          args: [signal.id, runId, signal.name, value, signal.atMs],
        },
        {
          sql: `update runs set due_ms = 0 where id = ? and owner is null and parked = 'signal'
            and status in ('running', 'waiting')`,
          args: [runId],
        },
      ])
      return inserted?.rowsAffected === 1
    },
  }
}

/** Texts of the runs that are executed here. */
function data(records: Records, runs: readonly NewRun[], insert: typeof always): InStatement[] {
  const here = runs.filter(({ elsewhere }) => !elsewhere)
  if (here.length === 0) return []
  return [
    insert.data.statement(
      here.map(({ id, input }) => ({ run_id: id, input: records.seal(input, { record: id, field: 'input' }) })),
    ),
  ]
}

/**
 * Writes what makes these runs. Where a worker is free, the same transaction takes what is due, by the turns of every claim: a run that is
 * made and taken needs no claim of its own, and its input is not read again.
 */
async function writeClaimed(
  db: Db,
  claims: NewRunClaims,
  runs: readonly NewRun[],
  statements: readonly InStatement[],
): Promise<ResultSet[]> {
  const here = runs.filter(({ elsewhere }) => !elsewhere)
  const claim = here.length > 0 ? claims.beside() : undefined
  let results: ResultSet[]
  try {
    results = await db.write([...statements, ...(claim?.statements ?? [])])
  } catch (error) {
    claim?.failed(error)
    throw error
  }
  const made = here.map(({ id, input, events = [] }): [string, NewlyMade] => {
    return [id, { input, events: events.map(({ entry }) => entry) }]
  })
  claim?.done(results.slice(statements.length), new Map(made))
  if (!claim && here.length > 0) claims.wake()
  return results
}

function creation(records: Records, runs: readonly NewRun[], insert = always): InStatement[] {
  const events = runs.flatMap(run =>
    (run.events ?? []).map(({ entry: { seq, hash }, body }) => ({
      run_id: run.id,
      seq,
      hash,
      body: records.seal(body, { record: run.id, field: `event ${seq}` }),
    })),
  )
  return [
    insert.runs.statement(
      runs.map(run => ({
        id: run.id,
        tenant_id: run.tenantId,
        agent_name: run.agentName,
        agent_id: run.agentId,
        version_id: run.versionId,
        status: 'queued',
        created_ms: run.createdMs,
        updated_ms: run.createdMs,
        due_ms: run.elsewhere ? null : (run.dueMs ?? run.createdMs),
        labels: run.labels,
        trigger_kind: run.trigger.kind,
        trigger_ref: run.trigger.ref ?? null,
        parent_run_id: run.parentRunId ?? null,
        depth: run.depth ?? 0,
        session_id: run.sessionId ?? null,
        schedule_id: run.scheduleId ?? null,
        isolation: run.isolation,
        forked_run: run.forkedFrom?.runId ?? null,
        forked_step: run.forkedFrom?.stepId ?? null,
        only_step: run.onlyStep ?? null,
        budget_exceeded: run.budgetExceeded ?? false,
        // The first order to a node is of the first epoch; here each claim begins one.
        epoch: run.elsewhere ? 1 : 0,
        node_id: run.elsewhere?.nodeId ?? null,
      })),
    ),
    countRuns.statement(
      runs.map(run => ({
        agent_id: run.agentId,
        day: run.day,
        model: '',
        tenant_id: run.tenantId,
        agent_name: run.agentName,
        runs: 1,
        run_id: run.id,
      })),
    ),
    ...data(records, runs, insert),
    ...insertEvents.statements(events),
    ...runs.flatMap(run => run.also ?? []),
  ]
}
