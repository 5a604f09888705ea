import type { InStatement, InValue } from '@libsql/client/web'
import { readLabel } from '../../shared/wire/runtime/conventions.ts'
import type { RunListQuery } from '../../shared/wire/runtime/run.ts'
import type { Position } from '../http/cursor.ts'
import type { PageOf } from '../http/page.ts'
import { RUN_COLUMNS, type RunRow } from './run-row.ts'
import { DOCS_OF_MS, docNumber, matchExpression, queriedFacts } from './search/search-facts.ts'

/** Of what a list says of a run beside its record. */
const OF_LISTS = `(select number from agent_versions where id = runs.version_id) as version_number`
/** A run that started very many is not counted to its end. */
const SUB_RUNS = `(select count(*) from (select 1 from runs as below where below.parent_run_id = runs.id limit 1000)) as sub_runs`

const SORTED_BY = {
  costUsd: 'cost_nano',
  durationMs: 'max(0, finished_ms - coalesce(started_ms, finished_ms))',
} as const

/** Where the row of a run stands in its list. */
export function placeOfRow(row: RunRow, sort: RunListQuery['sort']): Position {
  const { id, created_ms, started_ms, finished_ms, cost_nano } = row
  if (sort === undefined) return { at: created_ms, id }
  if (sort === 'costUsd') return { at: cost_nano, id }
  return { at: Math.max(0, (finished_ms ?? 0) - (started_ms ?? finished_ms ?? 0)), id }
}

interface Conditions {
  sql: string
  args: InValue[]
}

/** What a query asks for, without its page. */
function conditionsOf(tenantId: string, query: RunListQuery): Conditions {
  const { sessionId, scheduleId, parentRunId, trigger, errorCode } = query
  // Such runs are few and have an index of their own: by the tenant all of its runs would be read for them.
  const isNarrow = [sessionId, scheduleId, parentRunId].some(one => one !== undefined)
  const conditions = [isNarrow ? '+tenant_id = ?' : 'tenant_id = ?']
  const args: InValue[] = [tenantId]
  const filter = (column: string, value: string | undefined) => {
    if (value === undefined) return
    conditions.push(`${column} = ?`)
    args.push(value.toWellFormed())
  }
  const bound = (condition: string, moment: string | undefined) => {
    if (moment === undefined) return
    conditions.push(condition)
    args.push(Date.parse(moment))
  }
  filter('agent_name', query.agentName)
  filter('status', query.status)
  filter('error_code', errorCode)
  // As a text of its own: an index holds the turns of conversations alone.
  if (trigger === 'session') conditions.push("trigger_kind = 'session'")
  else filter('trigger_kind', trigger)
  filter('session_id', sessionId)
  filter('schedule_id', scheduleId)
  filter('parent_run_id', parentRunId)
  const time = query.sort === undefined ? 'created_ms' : 'finished_ms'
  if (query.sort !== undefined) conditions.push('finished_ms is not null')
  bound(`${time} >= ?`, query.from)
  bound(`${time} < ?`, query.to)
  // The turns of a conversation would bury everything else.
  if ([sessionId, trigger, errorCode].every(one => one === undefined)) conditions.push("trigger_kind <> 'session'")
  if (query.subRuns === 'folded') conditions.push("trigger_kind <> 'subagent'")
  return { sql: conditions.join(' and '), args }
}

interface Bound {
  where: string
  args: InValue[]
}

const NO_BOUND: Bound = { where: '', args: [] }

/** Entries of the index of words below one of a millisecond. */
const belowDoc = (at: number, number: number): Bound => ({
  where: `and run_search.rowid < cast(? as integer) * ${DOCS_OF_MS} + cast(? as integer)`,
  args: [at, number],
})

/** Where the runs of a list are found, in the order of the list, and what of them belongs to its next page. */
interface Source {
  from: string
  where: string
  args: InValue[]
  /** Where the first page begins. */
  newest?: Bound | undefined
  /** The place of a run of the page before. */
  after: (at: Position) => Bound
  order: string
}

/** Runs that succeeded are most of all; of the others an index finds few, whatever else is asked of them. */
function byCreation(query: RunListQuery): Source {
  const { status, agentName, errorCode, sessionId, scheduleId, parentRunId } = query
  const isNarrower = [agentName, errorCode, sessionId, scheduleId, parentRunId].some(one => one !== undefined)
  const isFew = status !== undefined && status !== 'succeeded' && !isNarrower
  return { ...inOrder, from: isFew ? 'runs indexed by runs_status' : 'runs' }
}

const inOrder: Omit<Source, 'from'> = {
  where: '',
  args: [],
  after: ({ at, id }) => ({ where: 'and (created_ms, id) < (?, ?)', args: [at, id] }),
  order: 'created_ms desc, id desc',
}

/** What of a query the index of words knows. */
function matchOf(tenantId: string, q: string, query: RunListQuery): string | undefined {
  const { key, value } = query.label === undefined ? {} : readLabel(query.label)
  return matchExpression(queriedFacts(tenantId, query), q, [query.agentName, query.errorCode, key, value])
}

/** The index of words, else that of labels, else the list itself: each has the order of creation, so that a page ends where it is full. */
function sourceOf(tenantId: string, query: RunListQuery): Source {
  const { q, label, from, to } = query
  if (q !== undefined) {
    const match = matchOf(tenantId, q, query)
    const oldest = from === undefined ? '' : `run_search.rowid >= cast(? as integer) * ${DOCS_OF_MS} and `
    return {
      from: 'run_search cross join run_search_docs as d on d.doc = run_search.rowid cross join runs on runs.id = d.run_id',
      // A search for no word finds no run.
      where: `${match === undefined ? 'false and ' : 'run_search match ? and '}${oldest}`,
      args: [...(match === undefined ? [] : [match]), ...(from === undefined ? [] : [Date.parse(from)])],
      newest: to === undefined ? undefined : belowDoc(Date.parse(to), 0),
      after: ({ at, id }) => belowDoc(at, docNumber(id)),
      order: 'run_search.rowid desc',
    }
  }
  if (label === undefined) return byCreation(query)
  const { key, value } = readLabel(label)
  return {
    from: 'run_labels as l cross join runs on runs.id = l.run_id',
    where: 'l.tenant = ? and l.name = ? and l.value = ? and ',
    args: [tenantId, key.toWellFormed(), value.toWellFormed()],
    after: ({ at, id }) => ({ where: 'and (l.made_ms, l.run_id) < (?, ?)', args: [at, id] }),
    order: 'l.made_ms desc, l.run_id desc',
  }
}

/** Labels beside another source. */
function labelled({ q, label }: RunListQuery): Conditions {
  if (label === undefined || q === undefined) return { sql: '', args: [] }
  const { key, value } = readLabel(label)
  return {
    sql: ` and exists (select 1 from run_labels as l where l.tenant = runs.tenant_id and l.name = ? and l.value = ?
      and l.made_ms = runs.created_ms and l.run_id = runs.id)`,
    args: [key.toWellFormed(), value.toWellFormed()],
  }
}

/** The rows of a page of runs, and one more where there is one. */
export function listStatement(tenantId: string, query: RunListQuery, page: PageOf): InStatement {
  const columns = [
    RUN_COLUMNS,
    ...(query.fields === 'title' ? [OF_LISTS] : []),
    ...(query.subRuns === 'folded' ? [SUB_RUNS] : []),
  ].join(', ')
  if (query.sort === undefined) {
    const { from, where, args, order, newest = NO_BOUND, after } = found(tenantId, query)
    const behind = page.after ? after(page.after) : newest
    return {
      sql: `select ${columns} from ${from} where ${where} ${behind.where} order by ${order} limit ?`,
      args: [...args, ...behind.args, page.limit + 1],
    }
  }
  const { from, where, args } = sorted(tenantId, query)
  const value = SORTED_BY[query.sort]
  const { after, limit } = page
  return {
    sql: `select ${columns} from runs where id in (
        select id from ${from} where ${where} ${after ? `and (${value}, id) < (?, ?)` : ''}
        order by ${value} desc, id desc limit ?)
      order by ${value} desc, id desc`,
    args: [...args, ...(after ? [after.at, after.id] : []), limit + 1],
  }
}

function found(tenantId: string, query: RunListQuery) {
  const source = sourceOf(tenantId, query)
  const conditions = conditionsOf(tenantId, query)
  const beside = labelled(query)
  return {
    ...source,
    where: source.where + conditions.sql + beside.sql,
    args: [...source.args, ...conditions.args, ...beside.args],
  }
}

/** The runs of a sorted list, which is of those that ended: the newest, so that no list grows with history. */
function sorted(tenantId: string, query: RunListQuery): Pick<Source, 'from' | 'where' | 'args'> {
  const { sql: where, args } = conditionsOf(tenantId, query)
  if (query.q === undefined && query.label === undefined) {
    const { from, to } = query
    const times = [from, to].flatMap(moment => (moment === undefined ? [] : [Date.parse(moment)]))
    // The index has all that is compared, so that rows are read for one page alone.
    const newest = `select tenant_id, finished_ms, trigger_kind, status, error_code, agent_name, cost_nano, started_ms, id
      from runs indexed by runs_ended where tenant_id = ? and finished_ms is not null ${from === undefined ? '' : 'and finished_ms >= ?'}
      ${to === undefined ? '' : 'and finished_ms < ?'} order by finished_ms desc limit ${MOST_SORTED}`
    return { from: `(${newest})`, where, args: [tenantId, ...times, ...args] }
  }
  const hits = query.q === undefined ? labelledRuns(tenantId, query) : searchedRuns(tenantId, query, query.q)
  const beside = labelled(query)
  return {
    from: `(${hits.sql} limit ${MOST_COUNTED + 1}) as hit cross join runs on runs.id = hit.run_id`,
    where: where + beside.sql,
    args: [...hits.args, ...args, ...beside.args],
  }
}

/** The newest first. What ended before a moment was made before it. */
function searchedRuns(tenantId: string, query: RunListQuery, q: string): Conditions {
  const match = matchOf(tenantId, q, query)
  const below = query.to === undefined ? NO_BOUND : belowDoc(Date.parse(query.to), 0)
  return {
    sql: `select run_id from run_search cross join run_search_docs as d on d.doc = run_search.rowid
      where ${match === undefined ? 'false' : 'run_search match ?'} ${below.where} order by run_search.rowid desc`,
    args: [...(match === undefined ? [] : [match]), ...below.args],
  }
}

function labelledRuns(tenantId: string, { label = '', to }: RunListQuery): Conditions {
  const { key, value } = readLabel(label)
  return {
    sql: `select run_id from run_labels where tenant = ? and name = ? and value = ? ${to === undefined ? '' : 'and made_ms < ?'}
      order by made_ms desc, run_id desc`,
    args: [tenantId, key.toWellFormed(), value.toWellFormed(), ...(to === undefined ? [] : [Date.parse(to)])],
  }
}

/** Of what ended, no more are put in order. */
const MOST_SORTED = 50_000

/** Nothing counts further, and of what a search or a label finds no more are put in order, the newest. */
export const MOST_COUNTED = 10_000

/** How many runs a query is about, up to one more than the most that are counted. */
export function countStatement(tenantId: string, query: RunListQuery): InStatement {
  const { from, where, args, newest }: Pick<Source, 'from' | 'where' | 'args' | 'newest'> =
    query.sort === undefined ? found(tenantId, query) : sorted(tenantId, query)
  const { where: below, args: at } = newest ?? NO_BOUND
  return {
    sql: `select count(*) as runs from (select 1 from ${from} where ${where} ${below} limit ${MOST_COUNTED + 1})`,
    args: [...args, ...at],
  }
}
