import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { turnOf } from '../calibrate/calibration-store.ts'
import type { RouteRef } from '../calibrate/route-cache.ts'
import type { outcomes as outcomeTable, routingConfigs } from '../schema/tables.ts'
import { exportRecords, type Span } from '../traces/stored-records.ts'

export interface LoggedTrace {
  readonly trace: TraceRecord
  /** Whether the served answer failed; undefined until it is reported. */
  readonly failed: boolean | undefined
}

/** Every record of a window with what was reported about it, a page at a time. */
export async function* loggedTraces(db: Db, span: Span): AsyncGenerator<LoggedTrace[]> {
  const [from, to] = [span.since?.toISOString() ?? '', span.until?.toISOString()]
  for await (const page of exportRecords(db, span)) {
    const traces = page
      .map(text => readJson(text) as TraceRecord)
      .filter(({ ts }) => ts >= from && (to === undefined || ts < to))
    const first = traces[0]
    if (first === undefined) continue
    // A page is a piece of one chain, so all of it is of one tenant.
    const outcomes = await outcomesOf(
      db,
      first.tenant_id,
      traces.map(({ trace_id }) => trace_id),
    )
    yield traces.map(trace => ({ trace, failed: outcomes.get(trace.trace_id) }))
  }
}

/** A routed request that got as far as a call: only such a start has a cost or an outcome. */
export function hasStart({ mode, attempts, policy }: TraceRecord): boolean {
  return mode === 'enforce' && attempts.length > 0 && policy.propensity > 0
}

async function outcomesOf(db: Db, tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, boolean>> {
  const answer = await db.execute({
    sql: `select trace_id, fails, passes from outcomes
      where tenant_id = ? and trace_id in (select value from json_each(?))`,
    args: [tenant, JSON.stringify(ids)],
  })
  const outcomes = new Map<string, boolean>()
  for (const { trace_id, fails, passes } of rowsOf<Pick<RowOf<typeof outcomeTable>, 'trace_id' | 'fails' | 'passes'>>(
    answer,
  )) {
    const turn = turnOf({ fails, passes })
    if (turn !== undefined) outcomes.set(trace_id, turn === 'fail')
  }
  return outcomes
}

/** Names of routes over the configs that this store has seen: a route that only moved is the same route. */
export async function routeNames(db: Db): Promise<(trace: TraceRecord) => string> {
  const answer = await db.execute('select config_hash, body from routing_configs')
  const known = new Map(
    rowsOf<Pick<RowOf<typeof routingConfigs>, 'config_hash' | 'body'>>(answer).map(({ config_hash, body }) => [
      config_hash,
      (readJson(body) as { routes: RouteRef[] }).routes,
    ]),
  )
  return ({ policy, route_ix }) =>
    known.get(policy.config_hash)?.[route_ix ?? -1]?.fingerprint ?? `${policy.config_hash} ${route_ix}`
}
