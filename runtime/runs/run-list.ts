import type { InStatement, InValue } from '@libsql/client/web'
import type { RunListQuery } from '../../shared/wire/runtime/run.ts'
import { type PageOf, pageSql } from '../http/page.ts'
import { RUN_COLUMNS } from './run-row.ts'

/** Of what a list says of a run beside its record. */
const OF_LISTS = `(select number from agent_versions where id = runs.version_id) as version_number`
/** A run that started very many is not counted to its end. */
const SUB_RUNS = `(select count(*) from (select 1 from runs as below where below.parent_run_id = runs.id limit 1000)) as sub_runs`

const SORTED_BY = {
  costUsd: 'cost_nano',
  durationMs: 'max(0, finished_ms - coalesce(started_ms, finished_ms))',
} as const

interface Conditions {
  sql: string
  args: InValue[]
}

/** What a query asks for, without its page. */
function conditionsOf(tenantId: string, query: RunListQuery): Conditions {
  const conditions = ['tenant_id = ?']
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
  filter('error_code', query.errorCode)
  filter('trigger_kind', query.trigger)
  filter('session_id', query.sessionId)
  filter('schedule_id', query.scheduleId)
  filter('parent_run_id', query.parentRunId)
  const time = query.sort === undefined ? 'created_ms' : 'finished_ms'
  if (query.sort !== undefined) conditions.push('finished_ms is not null')
  bound(`${time} >= ?`, query.from)
  bound(`${time} < ?`, query.to)
  const { sessionId, trigger, errorCode } = query
  // The turns of a conversation would bury everything else.
  if ([sessionId, trigger, errorCode].every(one => one === undefined)) conditions.push("trigger_kind <> 'session'")
  if (query.subRuns === 'folded') conditions.push("trigger_kind <> 'subagent'")
  return { sql: conditions.join(' and '), args }
}

/** The rows of a page of runs, and one more where there is one. */
export function listStatement(tenantId: string, query: RunListQuery, page: PageOf): InStatement {
  const columns = [
    RUN_COLUMNS,
    ...(query.fields === 'title' ? [OF_LISTS] : []),
    ...(query.subRuns === 'folded' ? [SUB_RUNS] : []),
  ].join(', ')
  const { sql, args } = conditionsOf(tenantId, query)
  if (query.sort === undefined) {
    const { where, order, args: more } = pageSql(page)
    return { sql: `select ${columns} from runs where ${sql} ${where} ${order}`, args: [...args, ...more] }
  }
  const value = SORTED_BY[query.sort]
  const { after, limit } = page
  // The index has all that is compared, so that rows are read for this page alone.
  return {
    sql: `select ${columns} from runs where id in (
        select id from runs indexed by runs_ended where ${sql} ${after ? `and (${value}, id) < (?, ?)` : ''}
        order by ${value} desc, id desc limit ?)
      order by ${value} desc, id desc`,
    args: [...args, ...(after ? [after.at, after.id] : []), limit + 1],
  }
}

/** Nothing counts further. */
export const MOST_COUNTED = 10_000

/** How many runs a query is about, up to one more than the most that are counted. */
export function countStatement(tenantId: string, query: RunListQuery): InStatement {
  const { sql, args } = conditionsOf(tenantId, query)
  const from = query.sort === undefined ? 'runs' : 'runs indexed by runs_ended'
  return { sql: `select count(*) as runs from (select 1 from ${from} where ${sql} limit ${MOST_COUNTED + 1})`, args }
}
