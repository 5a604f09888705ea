import type { InStatement } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { type Db, objectIn, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import type { Calibration as Settings } from '../config/routing-config.ts'
import type { calibration, outcomes } from '../schema/tables.ts'
import type { Turn } from './adaptive-conformal.ts'
import { type Matureness, maturing, type StoredCalibration } from './calibration.ts'
import { PairWindow } from './pair-window.ts'
import { type AnswerPlace, LAST_ID } from './served-evidence.ts'

/** What the store knows of one route of one tenant. */
export interface Entry {
  readonly tenantId: string
  readonly routeFp: string
  /** Grows with every change of any entry; 0 for one that is not stored yet. */
  readonly version: number
  readonly kept: StoredCalibration
}

/** One scored answer as `router calibrate` reads it. */
export interface StoredPair {
  readonly score: number
  readonly failed: boolean
  readonly rung: number
  readonly passedOver?: number
  /** When its call began; undefined for what an older version left. */
  readonly answeredMs?: number
}

/** A row of `changedSince` or `entriesOf`. */
export type EntryRow = Pick<RowOf<typeof calibration>, 'tenant_id' | 'route_fp' | 'version' | 'state'>

const COLUMNS = 'tenant_id, route_fp, version, state'

/** Entries that changed after this version, in any process. */
export const changedSince = (version: number): InStatement => ({
  sql: `select ${COLUMNS} from calibration where version > ? order by version`,
  args: [version],
})

/** All entries of a tenant, or of everyone. */
export const entriesOf = (tenant: string | undefined): InStatement =>
  tenant === undefined
    ? `select ${COLUMNS} from calibration order by tenant_id, route_fp`
    : { sql: `select ${COLUMNS} from calibration where tenant_id = ? order by route_fp`, args: [tenant] }

export function toEntry(row: EntryRow): Entry {
  const { tenant_id: tenantId, route_fp: routeFp, version, state } = row
  const name = `the calibration of route ${routeFp} of ${tenantId}`
  return readRow(
    name,
    row,
    () => ({ tenantId, routeFp, version, kept: objectIn<StoredCalibration>(state) }),
    'restore a backup',
  )
}

// A row that another process changed in the meantime has another version: `previous` then becomes null, which its column refuses, and
// the whole transaction falls with it. JSON gives every process the very same numbers back; the columns beside it are for people.
const putSql = `insert into calibration (tenant_id, route_fp, previous, state, t, n, k, certified_lambda, p_value, updated_at, version)
  values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (select coalesce(max(version), 0) + 1 from calibration))
  on conflict (tenant_id, route_fp) do update set
    previous = case when calibration.version = excluded.previous then excluded.previous end,
    state = excluded.state, t = excluded.t, n = excluded.n, k = excluded.k, certified_lambda = excluded.certified_lambda,
    p_value = excluded.p_value, updated_at = excluded.updated_at, version = excluded.version
  returning version`

/** Puts an entry in the place of the version that it was made from; gives the new version, or fails as a whole. */
export function putEntry({ tenantId, routeFp, version, kept }: Entry, now: Date): InStatement {
  const { t, n, failures, certifiedLambda, pValue } = kept
  return {
    sql: putSql,
    args: [
      ...[tenantId, routeFp, version, JSON.stringify(kept)],
      ...[t, n, failures, certifiedLambda, pValue, now.toISOString()],
    ],
  }
}

/** The newest pairs of a route, which a process reads once and keeps. */
export async function readWindow(
  db: Db,
  { tenantId, routeFp, size, places }: { tenantId: string; routeFp: string; size: number; places: number },
): Promise<PairWindow> {
  const window = new PairWindow(size)
  const answer = await db.execute({
    sql: `select json_group_array(json_array(ix, score, fails, passes)) as page from (
        select ix, score, fails, passes from outcomes where tenant_id = ? and route_fp = ? and ix >= ? and ix < ? order by ix)`,
    args: [tenantId, routeFp, Math.max(0, places - size), places],
  })
  const page = readJson(rowsOf<{ page: string }>(answer)[0]!.page) as [
    ix: number,
    score: string,
    fails: number,
    passes: number,
  ][]
  for (const [ix, score, fails, passes] of page) window.put(ix, Number(score), turnOf({ fails, passes }))
  return window
}

/** A page takes some milliseconds; what is left over comes with the next commit. */
const MATURE_PAGE = 1000

/** The outcomes of a route that count since the last look; undefined where it is not time to look. */
export async function readMatureness(
  db: Db,
  { tenantId, routeFp, kept }: Entry,
  settings: Settings,
  nowMs: number,
): Promise<Matureness | undefined> {
  const wanted = maturing(kept, settings, nowMs)
  if (wanted === undefined) return undefined
  const { from, toMs } = wanted
  const all: AnswerPlace = { answeredMs: toMs, traceId: LAST_ID }
  if (from === undefined) return { outcomes: [], upTo: all }
  const answer = await db.execute({
    sql: `select answered_ms, trace_id, session, fails, passes from outcomes where tenant_id = ? and route_fp = ?
      and answered_ms is not null and (answered_ms, trace_id) > (?, ?) and answered_ms <= ?
      order by answered_ms, trace_id limit ?`,
    args: [tenantId, routeFp, from.answeredMs, from.traceId, toMs, MATURE_PAGE],
  })
  const rows = rowsOf<MatureRow>(answer)
  const outcomes = rows.flatMap(row => {
    const to = turnOf(row)
    return to === undefined ? [] : [{ session: row.session, to }]
  })
  const last = rows.length < MATURE_PAGE ? undefined : rows.at(-1)
  return { outcomes, upTo: last ? { answeredMs: last.answered_ms, traceId: last.trace_id } : all }
}

/** The routes, of those with outcomes, that have some which count by now and did not at the last look. */
export async function routesWithMature(
  db: Db,
  entries: readonly Entry[],
  settings: Settings,
  nowMs: number,
): Promise<readonly Pick<Entry, 'tenantId' | 'routeFp'>[]> {
  const looked = entries.flatMap(({ tenantId, routeFp, kept }) => {
    const wanted = maturing(kept, settings, nowMs)
    return wanted?.from ? [[tenantId, routeFp, wanted.from.answeredMs, wanted.from.traceId, wanted.toMs]] : []
  })
  if (looked.length === 0) return []
  const answer = await db.execute({
    sql: `select one.value ->> 0 as tenantId, one.value ->> 1 as routeFp from json_each(?) as one where exists (
      select 1 from outcomes where tenant_id = one.value ->> 0 and route_fp = one.value ->> 1 and answered_ms is not null
        and (answered_ms, trace_id) > (one.value ->> 2, one.value ->> 3) and answered_ms <= one.value ->> 4)`,
    args: [JSON.stringify(looked)],
  })
  return rowsOf(answer)
}

type MatureRow = Pick<RowOf<typeof outcomes>, 'trace_id' | 'fails' | 'passes'> & {
  answered_ms: number
  session: string
}

/** docs/spec/router.md §2.4: a trace failed if any reporter's latest word is fail, and passed if one of the others is pass. */
export function turnOf({ fails, passes }: { fails: number; passes: number }): Turn {
  if (fails > 0) return 'fail'
  return passes > 0 ? 'pass' : undefined
}

const PAGE = 5000

/** Of a scored answer, so with a place. */
type PairRow = Pick<RowOf<typeof outcomes>, 'score' | 'rung' | 'fails' | 'passes' | 'answered_ms'> & {
  ix: number
  below: string | null
}

// Scores of attempts on lower rungs that no gate had failed, as the record has them. A record that was dropped says nothing of them.
const pairsSql = `select ix, score, rung, fails, passes, answered_ms, case when rung > 0 then (
    select json_group_array(a.value -> 'score') from traces t, json_each(t.body, '$.attempts') a
    where t.trace_id = o.trace_id and t.tenant_id = o.tenant_id and a.value ->> 'rung' < o.rung
      and a.value ->> 'gate' in ('pass', 'abstain') and a.value ->> 'score' is not null) end as below
  from outcomes o where tenant_id = ? and route_fp = ? and ix >= ? order by ix limit ?`

/** Every pair of a route in the order in which the outcomes came, a page at a time. */
export async function* storedPairs(db: Db, tenantId: string, routeFp: string): AsyncGenerator<StoredPair> {
  for (let from = 0; ; ) {
    const answer = await db.execute({
      sql: pairsSql,
      args: [tenantId, routeFp, from, PAGE],
    })
    const rows = rowsOf<PairRow>(answer)
    for (const { score, rung, fails, passes, answered_ms, below } of rows) {
      const turn = turnOf({ fails, passes })
      if (turn === undefined) continue
      const keptBack = below === null ? [] : (readJson(below) as number[])
      const passedOver = keptBack.length > 0 && { passedOver: Math.max(...keptBack) }
      const answered = answered_ms !== null && { answeredMs: answered_ms }
      yield { score: Number(score), failed: turn === 'fail', rung, ...passedOver, ...answered }
    }
    if (rows.length < PAGE) return
    from = rows.at(-1)!.ix + 1
  }
}
