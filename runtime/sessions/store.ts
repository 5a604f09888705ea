import type { InStatement, InValue, ResultSet } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { isFailedCondition } from '../../shared/sql/db-fault.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import type { SessionMessage } from '../../shared/wire/runtime/session.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { runData, runs, sessions, turns } from '../schema/tables.ts'
import { openMaybe, type Records, sealMaybe } from '../vault/records.ts'
import { messagesOf, openTurn, type SessionRow, type StopReason, type TurnEnd, toSession, turnEnd } from './session.ts'

export interface NewSession {
  id: string
  tenantId: string
  agentName: string
  agentId: string
  versionId: string
  /** JSON texts. */
  title: string | null
  labels: string
  environment: string | null
  createdMs: number
}

/** As much of a session as those who watch it need. */
export interface SessionState {
  id: string
  status: SessionRow['status']
  stoppedMs: number
  stopReason: StopReason
  lastEvent: number
  turnId: string | undefined
  /** Of the run that is the turn in progress. */
  turnStatus: string | undefined
}

/** A page of ends of turns, in order. */
export interface TurnEnds {
  ends: { id: number; end: TurnEnd }[]
  isLast: boolean
}

/** How far the ids of one life of a turn are from those of the next: no life says more pieces than that. */
export const LIFE = 2 ** 20

const MESSAGES = 200
/** Characters of the messages that are shown together. */
const MOST_OF_MESSAGES = 4_000_000
/** Turns that are read at once: so many, and fewer where they are long as they are stored. An input holds attachments too. */
const TURNS_PAGE = 100
const TURNS_BYTES = 1024 * 1024
/** Of earlier turns, as they are stored: more than any model's window, so that what fits is left to compaction. */
const MOST_CHARACTERS = 4_000_000
const KEPT_EVENTS = 1000
const KEPT_MS = 24 * 3600 * 1000

const HERE = 'not exists (select 1 from remote_runs where run_id = runs.id)'
/** Releases the run that is a stopped session's turn: the next process that claims it ends it. One on a node cannot be claimed here. */
const END_TURN = `update runs set updated_ms = ?2, ending = iif(${HERE}, 'cancelled', ending),
    epoch = epoch + ${HERE}, owner = null, due_ms = iif(${HERE}, 0, due_ms)
  where id = (select turn_id from sessions where id = ?1) and status in ('queued', 'running', 'waiting') returning id`

const STATE = `select j.value as wanted, s.id, s.status, s.stopped_ms, s.stop_reason, s.last_event, s.turn_id, r.status as turn_status
  from json_each(?) as j left join sessions as s on s.id = j.value left join runs as r on r.id = s.turn_id`

/** A page of a session's turns before a number, the newest first, with their inputs. */
const TURNS_BEFORE = `select t.*, d.input from (
    select run_id, sum(bytes) over (order by number desc) - bytes as before from (
      select t.run_id, t.number, ${bytesOf('t.text', 't.tool_calls', 'd.input')} as bytes
        from turns as t left join run_data as d on d.run_id = t.run_id
        where t.session_id = ?1 and t.number < ?2 order by t.number desc limit ${TURNS_PAGE})) as p
  join turns as t on t.run_id = p.run_id left join run_data as d on d.run_id = t.run_id
  where p.before < ${TURNS_BYTES} order by t.number desc`

/** A page of the ends of turns after an event, in order: of those that ended later than ?3, or of the completed ones, the last ?4. */
const ENDS = `select t.*, p.most from (
    select run_id, row_number() over by_event as place, sum(bytes) over by_event - bytes as before, count(*) over () as most
      from (select run_id, event_id, ${bytesOf('text', 'tool_calls', 'error')} as bytes from turns
        where session_id = ?1 and event_id > ?2 and (status = 'completed' or ?3 is not null) and ended_ms > coalesce(?3, 0)
        order by event_id desc limit ?4)
      window by_event as (order by event_id)) as p
  join turns as t on t.run_id = p.run_id
  where p.before < ${TURNS_BYTES} and p.place <= ${TURNS_PAGE} order by t.event_id`

type Stored = RowOf<typeof sessions>
type Turn = RowOf<typeof turns>
type StateRow = Pick<Stored, 'id' | 'status' | 'stopped_ms' | 'stop_reason' | 'last_event' | 'turn_id'> & {
  turn_status: RowOf<typeof runs>['status'] | null
}

export type SessionStore = ReturnType<typeof sessionStore>

export function sessionStore(db: Db, records: Records) {
  return {
    ...turnStatements(records),
    ...turnReads(db, records),

    /** Fails, with `isDeletedAgentError`, when the agent was deleted meanwhile. */
    async create(session: NewSession, also: readonly InStatement[]): Promise<void> {
      const { id, tenantId, agentName, agentId, versionId, title, labels, environment, createdMs } = session
      const kept = sealMaybe(records, environment, { record: id, field: 'environment' })
      await db.write([
        {
          sql: `insert into sessions (id, tenant_id, agent_name, agent_id, version_id, status, title, labels, environment,
              created_ms, updated_ms)
            values (?1, ?2, ?3, (select id from agents where id = ?4 and deleted_ms is null), ?5, 'active', ?6, ?7, ?8, ?9, ?9)`,
          args: [id, tenantId, agentName, agentId, versionId, title, labels, kept, createdMs],
        },
        ...also,
      ])
    },

    async get(id: string): Promise<SessionRow | undefined> {
      const found = await db.execute({ sql: 'select * from sessions where id = ?', args: [id.toWellFormed()] })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toSession(rows[0], records)
    },

    async list(
      tenantId: string,
      { agentName, status }: { agentName?: string | undefined; status?: string | undefined },
      page: PageOf,
    ): Promise<SessionRow[]> {
      const conditions = ['tenant_id = ?']
      const args: InValue[] = [tenantId]
      if (agentName !== undefined) {
        conditions.push('agent_name = ?')
        args.push(agentName.toWellFormed())
      }
      if (status !== undefined) {
        conditions.push('status = ?')
        args.push(status)
      }
      const { where, order, args: more } = pageSql(page)
      const found = await db.execute({
        sql: `select * from sessions where ${conditions.join(' and ')} ${where} ${order}`,
        args: [...args, ...more],
      })
      return readPage(page, rowsOf<Stored>(found), row => toSession(row, records))
    },

    /** The states of sessions; undefined for one that does not exist. */
    async states(ids: readonly string[]): Promise<Map<string, SessionState | undefined>> {
      const found = await db.execute({ sql: STATE, args: [JSON.stringify(ids)] })
      const rows = rowsOf<{ wanted: string } & (StateRow | { id: null })>(found)
      return new Map(rows.map(row => [row.wanted, row.id === null ? undefined : toState(row)]))
    },

    /** Stops a session for good, and gives the turn that it had to let go of. */
    async stop(id: string, nowMs: number): Promise<string | undefined> {
      const [, turn] = await db.write([
        stopped('id', id, 'stopped', nowMs),
        { sql: END_TURN, args: [id, nowMs] },
        dropped('id', id),
      ])
      return idIn(turn)
    },

    /** Undefined when it was gone. Its turns' runs stay, as runs do. */
    async remove(id: string, nowMs: number): Promise<{ turnId: string | undefined } | undefined> {
      const [turn, , , session] = await db.write([
        { sql: END_TURN, args: [id, nowMs] },
        dropped('id', id),
        { sql: 'delete from turns where session_id = ?', args: [id] },
        { sql: 'delete from sessions where id = ?', args: [id] },
      ])
      return session?.rowsAffected === 1 ? { turnId: idIn(turn) } : undefined
    },
  }
}

/** What begins a turn, for the transaction that makes its run. */
function turnStatements(records: Records) {
  return {
    /** For the transaction that makes a turn's run: fails it, with `isNotActive`, unless the session is active. */
    beginTurn(id: string, turnId: string, systemHint: string | undefined, nowMs: number): InStatement[] {
      const place = { record: id, field: 'systemHint' }
      const hint = systemHint === undefined ? null : records.seal(JSON.stringify(systemHint), place)
      return [
        {
          sql: `insert into turns (run_id, session_id, number, base, created_ms, status)
            values (?1, ?2, (select turn_count + 1 from sessions where id = ?2 and status = 'active'),
              coalesce((select last_event from sessions where id = ?2), 0), ?3, 'open')`,
          args: [turnId, id, nowMs],
        },
        {
          // The hints of a conversation that a node holds are kept there.
          sql: `update sessions set status = 'processing', turn_id = ?2, turn_count = turn_count + 1, updated_ms = ?3,
              system_hint = iif(exists (select 1 from remote_sessions where session_id = ?1), null, coalesce(?4, system_hint))
            where id = ?1`,
          args: [id, turnId, nowMs, hint],
        },
      ]
    },

    /** On a node, for the transaction that takes a turn's run; its control plane has made sure that the session is active. */
    orderedTurn(
      {
        id,
        tenantId,
        agentName,
        agentId,
        versionId,
      }: Omit<NewSession, 'title' | 'labels' | 'environment' | 'createdMs'>,
      turnId: string,
      systemHint: string | undefined,
      nowMs: number,
    ): InStatement[] {
      const place = { record: id, field: 'systemHint' }
      const hint = systemHint === undefined ? null : records.seal(JSON.stringify(systemHint), place)
      return [
        {
          sql: `insert into sessions (id, tenant_id, agent_name, agent_id, version_id, status, labels, created_ms, updated_ms)
            values (?, ?, ?, ?, ?, 'active', '{}', ?, ?) on conflict do nothing`,
          args: [id, tenantId, agentName, agentId, versionId, nowMs, nowMs],
        },
        {
          // Once, however often it is ordered.
          sql: `update sessions set status = 'processing', turn_id = ?2, turn_count = turn_count + 1, updated_ms = ?3,
              system_hint = coalesce(?4, system_hint)
            where id = ?1 and not exists (select 1 from turns where run_id = ?2)`,
          args: [id, turnId, nowMs, hint],
        },
        {
          sql: `insert into turns (run_id, session_id, number, base, created_ms, status)
            select ?1, id, turn_count, last_event, ?3, 'open' from sessions where id = ?2 on conflict do nothing`,
          args: [turnId, id, nowMs],
        },
      ]
    },
  }
}

/** The turns of sessions as they are read. */
function turnReads(db: Db, records: Records) {
  const readTurn = (row: Turn) => turnEnd(openTurn(row, records))

  async function ends(args: InValue[]): Promise<TurnEnds> {
    const rows = rowsOf<Turn & { most: number }>(await db.execute({ sql: ENDS, args }))
    const isLast = rows.length === (rows[0]?.most ?? 0)
    // A file is read on this thread, so who reads page after page lets others have their turn in between.
    if (!isLast) await pageTurn()
    return { ends: rows.flatMap(row => numbered(row, readTurn(row))), isLast }
  }

  return {
    /** The last messages, oldest first. */
    async messages(id: string) {
      const messages: SessionMessage[] = []
      let characters = 0
      for await (const turn of turnsBefore(db, id)) {
        const said = messagesOf(openTurn(turn, records))
        characters += said.reduce((sum, { content }) => sum + content.length, 0)
        if (messages.length > 0 && characters > MOST_OF_MESSAGES) break
        messages.push(...said.reverse())
        if (messages.length >= MESSAGES) break
      }
      return messages.slice(0, MESSAGES).reverse()
    },

    openingOf: (sessionId: string, turnId: string, turns: number) =>
      openingOf(db, records, { sessionId, turnId, turns }),
    hintOf: (sessionId: string, turnId: string) => hintOf(db, records, sessionId, turnId),

    async baseOf(turnId: string): Promise<number | undefined> {
      const found = await db.execute({ sql: 'select base from turns where run_id = ?', args: [turnId] })
      return rowsOf<Pick<Turn, 'base'>>(found)[0]?.base
    },

    async turn(turnId: string): Promise<TurnEnd | undefined> {
      const rows = rowsOf<Turn>(await db.execute({ sql: 'select * from turns where run_id = ?', args: [turnId] }))
      return rows[0] && readTurn(rows[0])
    },

    /** Ends of turns that came after an event, in order: of the last day, and at most the last thousand. */
    endsAfter: (id: string, eventId: number, nowMs: number) => ends([id, eventId, nowMs - KEPT_MS, KEPT_EVENTS]),

    /** The last turns that came to something, of those after an event, oldest first. */
    lastCompleted: (id: string, most: number, eventId: number) => ends([id, eventId, null, most]),
  }
}

/** The turns of a session before a number, the newest first, a page at a time in memory. */
async function* turnsBefore(db: Db, id: string, number = Number.MAX_SAFE_INTEGER) {
  for (let before = number; before > 1; ) {
    const found = await db.execute({ sql: TURNS_BEFORE, args: [id, before] })
    const rows = rowsOf<Turn & { input: string | null }>(found)
    yield* rows
    before = rows.at(-1)?.number ?? 0
    if (before > 1) await pageTurn()
  }
}

/** What a turn begins with: where its events are counted from, the hint in force and the turns before it, oldest first. */
async function openingOf(
  db: Db,
  records: Records,
  { sessionId, turnId, turns }: { sessionId: string; turnId: string; turns: number },
) {
  const [own, before] = await db.read([
    {
      sql: `select t.number, t.base, s.system_hint from turns as t join sessions as s on s.id = t.session_id
        where t.run_id = ?`,
      args: [turnId],
    },
    {
      sql: `select run_id, text, input from (
          select *, sum(length(text) + length(input)) over (order by number desc) as characters from (
            select t.run_id, t.number, t.text, d.input from turns as t join run_data as d on d.run_id = t.run_id
            where t.session_id = ?1 and t.status = 'completed'
              and t.number < (select number from turns where run_id = ?2)
            order by t.number desc limit ?3))
        where characters <= ?4 order by number desc`,
      args: [sessionId, turnId, turns, MOST_CHARACTERS],
    },
  ])
  const [row] = rowsOf<Pick<Turn, 'number' | 'base'> & Pick<Stored, 'system_hint'>>(own!)
  const hint = openMaybe(records, row?.system_hint, { record: sessionId, field: 'systemHint' })
  return (
    row && {
      base: row.base,
      systemHint: hint === null ? '' : (readJson(hint) as string),
      before: rowsOf<Pick<Turn, 'run_id' | 'text'> & Pick<RowOf<typeof runData>, 'input'>>(before!)
        .toReversed()
        .map(row => openTurn(row, records))
        .map(({ text, input }) => ({
          text: readJson(text!) as string,
          input: readJson(input) as Record<string, unknown>,
        })),
    }
  )
}

/** The hint that was in force in a turn: that of the last message until then which set one. */
async function hintOf(db: Db, records: Records, sessionId: string, turnId: string): Promise<string> {
  const found = await db.execute({ sql: 'select number from turns where run_id = ?', args: [turnId] })
  const [own] = rowsOf<Pick<Turn, 'number'>>(found)
  if (own === undefined) return ''
  for await (const { run_id: record, input } of turnsBefore(db, sessionId, own.number + 1)) {
    const given = input ? readJson(records.open(input, { record, field: 'input' })) : {}
    const { systemHint } = given as { systemHint?: string }
    if (systemHint !== undefined) return systemHint
  }
  return ''
}

/** For the transaction that deletes an agent; the runs of its sessions end as those of the agent do. */
export function stopSessions({ id }: { id: string }, nowMs: number): InStatement[] {
  return [stopped('agent_id', id, 'agent_deleted', nowMs), dropped('agent_id', id)]
}

/** What was asked in a conversation that is over, where its agent keeps no prompts. A turn that is cut off drops its own when it ends. */
function dropped(column: 'id' | 'agent_id', value: string): InStatement {
  return {
    sql: `update run_data set input = '' where run_id in (
        select t.run_id from sessions as s join turns as t on t.session_id = s.id join agent_versions as v on v.id = s.version_id
        where s.${column} = ?1 and t.status <> 'open' and iif(json_valid(v.manifest), json_extract(v.manifest, '$.privacy.storePrompts'), 1) = 0)`,
    args: [value],
  }
}

/** Its last event is beyond all that a turn in progress may still say. */
function stopped(column: 'id' | 'agent_id', value: string, reason: StopReason, nowMs: number): InStatement {
  return {
    sql: `update sessions set status = 'stopped', stop_reason = ?2, stopped_ms = ?3, updated_ms = ?3,
        last_event = last_event + 1 + coalesce((select (epoch + 8) * ${LIFE} from runs where id = turn_id), 0)
      where ${column} = ?1 and status <> 'stopped'`,
    args: [value, reason, nowMs],
  }
}

function idIn(result: ResultSet | undefined): string | undefined {
  return result && rowsOf<Pick<RowOf<typeof runs>, 'id'>>(result)[0]?.id
}

/** How long columns are as they are stored, which is known without reading them. */
function bytesOf(...columns: string[]): string {
  return columns.map(column => `coalesce(octet_length(${column}), 0)`).join(' + ')
}

function numbered(row: Turn, end: TurnEnd | undefined): { id: number; end: TurnEnd }[] {
  return end ? [{ id: row.event_id!, end }] : []
}

function toState(row: StateRow): SessionState {
  return {
    id: row.id,
    status: row.status,
    stoppedMs: row.stopped_ms ?? 0,
    stopReason: row.stop_reason!,
    lastEvent: row.last_event,
    turnId: row.turn_id ?? undefined,
    turnStatus: row.turn_status ?? undefined,
  }
}

/** The session was not active when its turn was to be made. */
export function isNotActive(error: unknown): boolean {
  return isFailedCondition(error, 'turns.number')
}

export function isDeletedAgentError(error: unknown): boolean {
  return isFailedCondition(error, 'sessions.agent_id')
}
