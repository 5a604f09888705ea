import { toUsd } from '../../shared/money/money.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import type { Evals, GateStats, RouteRungs, RungMove } from '../../shared/wire/router/evals.ts'
import { evalSums, rowsOfWindow } from './eval-sums.ts'
import type { Window } from './savings.ts'
import type { StoredChain } from './stored-records.ts'

/** What the store knows of `GET /-/evals`; which gates are disabled and the calibration are the running router's. */
export type StoredEvals = Omit<Evals, 'gates' | 'calibration'> & { gates: Omit<GateStats, 'disabled'>[] }

interface GateRuns {
  pass: number
  fail: number
  abstain: number
  cost: number
  /** How many runs took about this many microseconds. */
  times: Map<number, number>
}

export async function evals(chains: readonly StoredChain[], window: Window): Promise<StoredEvals> {
  const sums = evalSums()
  const counts = { requests: 0, escalations: 0, failovers: 0 }
  const routes = new Map<number | null, Map<number, number>>()
  const walls: number[] = []
  const walled = Math.ceil(WALLS / Math.max(1, chains.length))
  const moves = new Map<string, RungMove>()
  const gates = new Map<string, GateRuns>()
  const outcomes = { reported: 0, failed: 0 }
  for (const { db, tenant } of chains) {
    await rowsOfWindow(db, tenant, window, sums.add)
    const whole = [tenant, window.since?.getTime() ?? 0, window.until?.getTime() ?? Number.MAX_SAFE_INTEGER]
    const newest = await db.execute({ sql: wallsSql, args: [...whole, walled] })
    for (const { wall } of rowsOf<{ wall: unknown }>(newest)) if (typeof wall === 'number') walls.push(wall)
    for (let after: string | undefined = ''; after !== undefined; ) {
      const last = await db.execute({ sql: lastReportedSql, args: [tenant, after] })
      const upTo = rowsOf<{ trace_id: string }>(last)[0]?.trace_id
      const ended = await db.execute({ sql: outcomesSql, args: [...whole, after, upTo ?? null] })
      const sum = rowsOf<typeof outcomes>(ended)[0]!
      outcomes.reported += sum.reported
      outcomes.failed += sum.failed
      after = upTo
      if (after !== undefined) await pageTurn()
    }
  }
  const { calls, moves: moved, gates: runs } = sums.rows()
  for (const [route, rung, requests, straight, escalations, failovers] of calls) {
    counts.requests += requests
    counts.escalations += escalations
    counts.failovers += failovers
    const rungs = routes.get(route) ?? new Map<number, number>()
    routes.set(route, rungs.set(rung, (rungs.get(rung) ?? 0) + requests))
    // A request that did not climb was served at its start rung.
    if (rung >= 0) move(moves, null, rung, straight)
  }
  for (const [from, to, requests] of moved) move(moves, from, to, requests)
  for (const [id, verdict, micros, runsOfIt, cost] of runs) {
    const gate = gates.get(id) ?? { pass: 0, fail: 0, abstain: 0, cost: 0, times: new Map() }
    gates.set(id, gate)
    gate[verdict] += runsOfIt
    gate.cost += cost
    gate.times.set(micros, (gate.times.get(micros) ?? 0) + runsOfIt)
  }
  const { reported, failed } = outcomes
  return {
    ...counts,
    served_by_rung: rungsOf([...routes.values()]),
    latency: latencyOf(walls),
    routes: [...routes]
      .sort(([a], [b]) => (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY))
      .map(([route_ix, rungs]) => routeOf(route_ix, rungs)),
    moves: [...moves.values()].sort((a, b) => (a.from ?? -1) - (b.from ?? -1) || a.to - b.to),
    gates: [...gates]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([gate_id, { pass, fail, abstain, cost, times }]) => ({
        gate_id,
        pass,
        fail,
        abstain,
        cost_usd: toUsd(cost),
        p50_ms: share(times, 0.5),
        p95_ms: share(times, 0.95),
      })),
    outcomes: {
      reported,
      failed,
      served_failure: reported === 0 ? null : failed / reported,
      ucb95: reported === 0 ? null : Math.min(1, failed / reported + Math.sqrt(Math.log(20) / (2 * reported))),
    },
  }
}

/** The newest calls whose times are read, of all tenants together. */
const WALLS = 1000

// The time of a call stands in its record alone, and so few records are read however long the window is.
const wallsSql = `select case when json_valid(body) then json_extract(body, '$.final.wall_ms') end as wall
  from traces indexed by traces_time where tenant_id = ? and ts_ms >= ? and ts_ms < ? order by ts_ms desc, seq desc limit ?`

// A trace failed if any reporter's latest word is fail, and passed if one of the others is pass (docs/spec/router.md §2.4).
const outcomesSql = `with latest as (
    select trace_id, verdict, max(seq) from feedback indexed by feedback_trace
    where tenant_id = ?1 and trace_id > ?4 and (?5 is null or trace_id <= ?5) group by trace_id, gate_id, reporter),
  outcome as (
    select trace_id, max(verdict = 'fail') as failed, max(verdict = 'pass') as passed from latest group by trace_id)
  select count(*) as reported, coalesce(sum(outcome.failed), 0) as failed from outcome cross join traces as t indexed by traces_trace_id on t.trace_id = outcome.trace_id
  where t.tenant_id = ?1 and t.ts_ms >= ?2 and t.ts_ms < ?3 and (outcome.failed or outcome.passed)`

// Where a stretch of the reported traces ends; the last one has no end.
const lastReportedSql = `select trace_id from feedback indexed by feedback_trace where tenant_id = ? and trace_id > ? order by trace_id limit 1 offset 2000`

/** Calls by the rung that served them; what no rung served is in none of them. */
function rungsOf(routes: readonly ReadonlyMap<number, number>[]): Record<string, number> {
  const served = new Map<number, number>()
  for (const [rung, requests] of routes.flatMap(one => [...one]))
    if (rung >= 0) served.set(rung, (served.get(rung) ?? 0) + requests)
  return Object.fromEntries([...served].sort(([a], [b]) => a - b).map(([rung, n]) => [String(rung), n]))
}

function routeOf(route_ix: number | null, rungs: ReadonlyMap<number, number>): RouteRungs {
  const requests = [...rungs.values()].reduce((sum, n) => sum + n, 0)
  return { route_ix, requests, served_by_rung: rungsOf([rungs]) }
}

function latencyOf(walls: number[]): Evals['latency'] {
  walls.sort((a, b) => a - b)
  const at = (part: number) => walls[Math.max(0, Math.ceil(part * walls.length) - 1)] ?? null
  return { calls: walls.length, p50_ms: at(0.5), p95_ms: at(0.95) }
}

function move(moves: Map<string, RungMove>, from: number | null, to: number, requests: number): void {
  if (requests === 0) return
  const key = `${from} ${to}`
  const known = moves.get(key)
  if (known) known.requests += requests
  else moves.set(key, { from, to, requests })
}

/** The time that this share of the runs did not exceed, in milliseconds. */
function share(times: ReadonlyMap<number, number>, part: number): number | null {
  const sorted = [...times].sort(([a], [b]) => a - b)
  const all = sorted.reduce((sum, [, runs]) => sum + runs, 0)
  let seen = 0
  for (const [time, runs] of sorted) {
    seen += runs
    if (seen >= part * all) return time / 1000
  }
  return null
}
