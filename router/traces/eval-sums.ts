import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import type { Verdict } from '../../shared/wire/router/feedback.ts'
import type { evalsDays, traces } from '../schema/tables.ts'
import { DAY_MS, dayOf, stretches, type Window } from './savings.ts'

type CallRow = [
  route: number | null,
  rung: number,
  requests: number,
  straight: number,
  escalations: number,
  failovers: number,
]
type MoveRow = [from: number | null, to: number, requests: number]
type GateRow = [gate: string, verdict: Verdict, micros: number, runs: number, cost: number]

/** What of evals adds up over records. Each row says first what it is of. */
export interface EvalRows {
  calls: CallRow[]
  moves: MoveRow[]
  gates: GateRow[]
}

type CountsRow = Pick<RowOf<typeof traces>, 'route_ix' | 'served_rung' | 'escalations' | 'failovers'> &
  Record<'requests' | 'straight', number>

/** A run of a record that was changed may lack any of its members. */
interface RunsRow {
  gate_id: unknown
  verdict: Verdict
  micros: number | null
  runs: number
  cost: number | null
}

/** Adds the rows of several stretches of records. */
export function evalSums() {
  const calls = new Map<string, CallRow>()
  const moves = new Map<string, MoveRow>()
  const gates = new Map<string, GateRow>()
  return {
    add(rows: EvalRows): void {
      addTo(calls, rows.calls, 2)
      addTo(moves, rows.moves, 2)
      addTo(gates, rows.gates, 3)
    },
    rows: (): EvalRows => ({ calls: sorted(calls), moves: sorted(moves), gates: sorted(gates) }),
  }
}

function addTo<R extends (string | number | null)[]>(sums: Map<string, R>, rows: readonly R[], width: number): void {
  for (const row of rows) {
    const key = JSON.stringify(row.slice(0, width))
    const known = sums.get(key)
    if (known === undefined) sums.set(key, [...row] as R)
    else for (let at = width; at < row.length; at++) known[at] = Number(known[at]) + Number(row[at])
  }
}

function sorted<R>(sums: ReadonlyMap<string, R>): R[] {
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}

/** Of the records of one stretch. */
export async function rowsOfStretch(db: Db, tenant: string, { since, until }: Window): Promise<EvalRows> {
  const args = [tenant, since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER]
  const [calls, gates, moves] = await db.read([
    { sql: callsSql, args },
    { sql: gatesSql, args },
    { sql: movesSql, args },
  ])
  return {
    calls: rowsOf<CountsRow>(calls!).map(row => [
      row.route_ix,
      row.served_rung,
      row.requests,
      row.straight,
      row.escalations,
      row.failovers,
    ]),
    moves: rowsOf<{ came: number | null; went: number; requests: number }>(moves!).map(row => [
      row.came,
      row.went,
      row.requests,
    ]),
    gates: rowsOf<RunsRow>(gates!).map(row => [
      String(row.gate_id),
      row.verdict,
      row.micros ?? 0,
      row.runs,
      row.cost ?? 0,
    ]),
  }
}

/** Of the records of one day, as they are kept. */
export async function rowsOfDay(db: Db, tenant: string, day: number) {
  const sums = evalSums()
  const whole = { since: new Date(day * DAY_MS), until: new Date((day + 1) * DAY_MS) }
  for await (const part of stretches(db, tenant, whole)) {
    sums.add(await rowsOfStretch(db, tenant, part))
  }
  return sums.rows()
}

/** The rows of a window: those of days that are over as they were kept, those of the others from their records. */
export async function rowsOfWindow(db: Db, tenant: string, window: Window, add: (rows: EvalRows) => void) {
  const closed = new Set<number>()
  const last = window.until === undefined ? Number.MAX_SAFE_INTEGER : dayOf(window.until.getTime()) - 1
  for (let from = Math.ceil((window.since?.getTime() ?? 0) / DAY_MS); ; ) {
    const answer = await db.execute({ sql: keptSql, args: [tenant, from, last] })
    const kept = rowsOf<RowOf<typeof evalsDays>>(answer)
    for (const { day, sums } of kept) {
      add(readJson(sums) as EvalRows)
      closed.add(day)
      from = day + 1
    }
    if (kept.length < KEPT) break
    await pageTurn()
  }
  for await (const part of stretches(db, tenant, window, closed)) add(await rowsOfStretch(db, tenant, part))
}

/** So many days are read at once. */
const KEPT = 31
// A row that was damaged is none: its day is read from the records.
const isList = (name: keyof EvalRows) => `json_type(sums, '$.${name}') = 'array'`
const keptSql = `select * from evals_days where tenant_id = ? and day >= ? and day <= ?
  and case when json_valid(sums) then ${isList('calls')} and ${isList('moves')} and ${isList('gates')} end order by day limit ${KEPT}`

const straight = 'served_rung >= 0 and escalations = 0 and failovers = 0'
const callsSql = `select route_ix, served_rung, count(*) as requests, sum(${straight}) as straight, sum(escalations) as escalations, sum(failovers) as failovers
  from traces indexed by traces_time where tenant_id = ? and ts_ms >= ? and ts_ms < ? group by route_ix, served_rung`

// From attempt to attempt. Only records of calls that moved are read whole; the others say where they were in the index.
const movesSql = `select case when attempt.key > 0 then json_extract(body, '$.attempts[' || (attempt.key - 1) || '].rung') end as came, attempt.value ->> 'rung' as went, count(*) as requests
  from traces indexed by traces_time cross join json_each(case when json_valid(body) then body else '{}' end, '$.attempts') as attempt
  where tenant_id = ? and ts_ms >= ? and ts_ms < ? and not (${straight}) and typeof(attempt.key) = 'integer'
  group by 1, 2 having typeof(went) = 'integer' and typeof(came) in ('integer', 'null')`

// Times to two digits: p50 and p95 are within 5 %, and the groups stay few however many runs there were.
const micros = 'run.value ->> 3'
const rounded = `case when ${micros} < 100 then ${micros} when ${micros} < 1000 then (${micros} + 5) / 10 * 10
  when ${micros} < 10000 then (${micros} + 50) / 100 * 100 when ${micros} < 100000 then (${micros} + 500) / 1000 * 1000
  when ${micros} < 1000000 then (${micros} + 5000) / 10000 * 10000 else (${micros} + 50000) / 100000 * 100000 end`
const gatesSql = `select run.value ->> 0 as gate_id, run.value ->> 1 as verdict, ${rounded} as micros, count(*) as runs, sum(run.value ->> 2) as cost
  from traces indexed by traces_time cross join json_each(case when json_valid(gates) then gates end) as run
  where tenant_id = ? and ts_ms >= ? and ts_ms < ? group by 1, 2, 3`
