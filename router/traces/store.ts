import type { InValue } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { type Db, objectIn, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import type { CheckpointList } from '../../shared/wire/router/checkpoint.ts'
import type { FeedbackList, FeedbackRecord } from '../../shared/wire/router/feedback.ts'
import type { ServedFrom, TraceRecord } from '../../shared/wire/router/trace.ts'
import type { TraceList } from '../../shared/wire/router/traces.ts'
import type { checkpoints, feedback, traces } from '../schema/tables.ts'
import { type StoredChain, storedChains } from './stored-records.ts'

export interface TraceFilter {
  /** Without one, all tenants. */
  tenant?: string | undefined
  limit: number
  before?: string | undefined
  mode?: string | undefined
  route?: number | undefined
  session?: string | undefined
  served_from?: ServedFrom | undefined
  since?: Date | undefined
  until?: Date | undefined
}

/** The cursor of a list does not read; the caller answers 400. */
export class CursorError extends Error {
  override name = 'CursorError'
}

/** A place in the list. */
interface Listed extends StoredChain {
  ts: number
  seq: number
}

type ListedRow = Pick<RowOf<typeof traces>, 'ts_ms' | 'seq'>

/**
 * Reads of the trace store, or of several that hold a router's tenants between them. Filters run on columns that the time index holds; only the
 * records of the answer are read whole.
 */
export function traceStore(...dbs: readonly Db[]) {
  /** One more than a page, of all chains. What is older than the page that others fill is not read, and no record is. */
  async function listed(chains: readonly StoredChain[], filter: TraceFilter): Promise<Listed[]> {
    let found: Listed[] = []
    for (const chain of chains) {
      const oldest = found[filter.limit]?.ts ?? Number.NEGATIVE_INFINITY
      const from = Math.max(filter.since?.getTime() ?? oldest, oldest)
      const since = from === Number.NEGATIVE_INFINITY ? undefined : new Date(from)
      const rows = rowsOf<ListedRow>(await chain.db.execute(listSql(chain.tenant, { ...filter, since })))
      if (rows.length > 0) {
        found.push(...rows.map(({ ts_ms, seq }) => ({ ...chain, ts: ts_ms, seq })))
        found = found.sort(newerFirst).slice(0, filter.limit + 1)
      }
      if (chains.length > 1) await pageTurn()
    }
    return found
  }

  async function recordsOf(page: readonly Listed[]): Promise<TraceRecord[]> {
    const records = new Map<Listed, TraceRecord>()
    for (const places of Map.groupBy(page, ({ tenant }) => tenant).values()) {
      for (const own of Map.groupBy(places, ({ db }) => db).values()) {
        const { db, tenant } = own[0]!
        const args = [tenant, JSON.stringify(own.map(({ seq }) => seq))]
        const rows = rowsOf<Pick<RowOf<typeof traces>, 'seq' | 'body'>>(await db.execute({ sql: bodiesSql, args }))
        const bodies = new Map(rows.map(({ seq, body }) => [seq, body]))
        for (const place of own) {
          const body = bodies.get(place.seq)
          const record = body === undefined ? undefined : readable<TraceRecord>(body)
          if (record) records.set(place, record)
        }
      }
    }
    return page.flatMap(place => records.get(place) ?? [])
  }

  return {
    /** Newest first, by the time of the request. */
    async list(filter: TraceFilter): Promise<TraceList> {
      const found = await listed(await storedChains(dbs, filter.tenant), filter)
      const page = found.slice(0, filter.limit)
      const last = found.length > filter.limit ? page.at(-1) : undefined
      return {
        traces: await recordsOf(page),
        next: last === undefined ? null : `${last.ts}.${last.seq}.${last.tenant}`,
      }
    },

    /** By trace id, response id, upstream request id or the caller's own request id, in this order; of several the newest. */
    async get(id: string, tenant?: string): Promise<TraceRecord | undefined> {
      const own = await traceById(dbs, id, tenant)
      if (own !== undefined) return own
      const chains = await storedChains(dbs, tenant)
      for (const column of otherIds) {
        let newest: TraceRecord | undefined
        for (const { db, tenant: one } of chains) {
          const answer = await db.execute({ sql: lookupSql(column), args: [one, id] })
          const [found] = rowsOf<Pick<RowOf<typeof traces>, 'body'>>(answer)
          const record = found && toRecord(found.body)
          if (record !== undefined && (newest === undefined || record.ts > newest.ts)) newest = record
        }
        if (newest !== undefined) return newest
      }
      return undefined
    },

    /** What was reported about a trace, oldest first. */
    async feedbackOf(tenant: string, traceId: string): Promise<FeedbackRecord[]> {
      for (const db of dbs) {
        const answer = await db.execute({
          sql: 'select body from feedback where tenant_id = ? and trace_id = ? order by seq',
          args: [tenant, traceId],
        })
        const rows = rowsOf<Pick<RowOf<typeof feedback>, 'body'>>(answer)
        if (rows.length > 0) return rows.map(row => readJson(row.body) as FeedbackRecord)
      }
      return []
    },

    feedback: (page: Page) => feedbackPage(dbs, page),
    checkpoints: (page: Page) => checkpointPage(dbs, page),
  }
}

/** One look in one index of each store. */
export async function traceById(dbs: readonly Db[], id: string, tenant?: string): Promise<TraceRecord | undefined> {
  for (const db of dbs) {
    const answer = await db.execute({ sql: 'select tenant_id, body from traces where trace_id = ?', args: [id] })
    const [row] = rowsOf<Pick<RowOf<typeof traces>, 'tenant_id' | 'body'>>(answer)
    if (row !== undefined && (tenant === undefined || row.tenant_id === tenant)) return toRecord(row.body)
  }
  return undefined
}

interface Page {
  tenant?: string | undefined
  after?: string | undefined
  limit: number
}

/** Reports in the order of their chains; one that was overwritten and is no JSON is null. */
async function feedbackPage(dbs: readonly Db[], { tenant, after, limit }: Page): Promise<FeedbackList> {
  const [seq, last] = after === undefined ? [-1, ''] : readAad(after)
  const found = await Promise.all(
    dbs.map(async db => {
      const answer = await db.execute({
        sql: `select tenant_id, seq, body from feedback
where ${tenant === undefined ? '(tenant_id, seq) > (?2, ?1)' : 'tenant_id = ?2 and seq > ?1'} order by tenant_id, seq limit ?3`,
        args: [seq, tenant ?? last, limit + 1],
      })
      return rowsOf<FeedbackRow>(answer)
    }),
  )
  const rows = found.length === 1 ? found[0]! : found.flat().toSorted(byChain)
  const page = rows.slice(0, limit)
  const end = page.at(-1)
  return {
    feedback: page.map(row => ({ tenant_id: row.tenant_id, record: readable<FeedbackRecord>(row.body) })),
    next: rows.length > limit && end !== undefined ? `${end.seq}.${end.tenant_id}` : null,
  }
}

type FeedbackRow = Pick<RowOf<typeof feedback>, 'tenant_id' | 'seq' | 'body'>

const byChain = (a: FeedbackRow, b: FeedbackRow) =>
  a.tenant_id === b.tenant_id ? a.seq - b.seq : a.tenant_id < b.tenant_id ? -1 : 1

/** In the order in which they were made, one store after the other. */
async function checkpointPage(dbs: readonly Db[], { tenant, after, limit }: Page): Promise<CheckpointList> {
  const [first, start] = after === undefined ? [0, 0] : readPlace(after)
  const found: { ix: number; body: string; store: number }[] = []
  let from = first
  for (let store = start; store < dbs.length && found.length <= limit; store++) {
    const answer = await dbs[store]!.execute({
      sql: `select ix, body from checkpoints where ${tenant === undefined ? '' : 'tenant_id = ?3 and '}ix > ?1 order by ix limit ?2`,
      args: [from, limit + 1 - found.length, ...(tenant === undefined ? [] : [tenant])],
    })
    for (const row of rowsOf<Pick<RowOf<typeof checkpoints>, 'ix' | 'body'>>(answer)) found.push({ ...row, store })
    from = 0
  }
  const page = found.slice(0, limit)
  const last = found.length > limit ? page.at(-1) : undefined
  return {
    checkpoints: page.flatMap(row => readable<CheckpointList['checkpoints'][number]>(row.body) ?? []),
    next: last === undefined ? null : last.store === 0 ? String(last.ix) : `${last.ix}.${last.store}`,
  }
}

const otherIds = ['response_id', 'upstream_request_id', 'client_request_id'] as const

/**
 * The groups of 1,024 records from the newest to the oldest, each asked for the id (see the indexes). A million records are about a
 * thousand questions of a few microseconds; the newest 50,000 ids are in memory and never get here.
 */
export function lookupSql(column: (typeof otherIds)[number]): string {
  return `with recursive span(low, high) as (
      select (select seq >> 10 from traces where tenant_id = ?1 order by seq limit 1),
             (select seq >> 10 from traces where tenant_id = ?1 order by seq desc limit 1)),
    part(ix) as (select high from span where high is not null union all select ix - 1 from part, span where ix > low)
    select t.body from part cross join traces t on t.tenant_id = ?1 and t.seq >> 10 = part.ix and t.${column} = ?2
    order by t.seq desc limit 1`
}

const newerFirst = (a: Listed, b: Listed) =>
  b.ts - a.ts || (a.tenant < b.tenant ? 1 : a.tenant > b.tenant ? -1 : b.seq - a.seq)

const bodiesSql = 'select seq, body from traces where tenant_id = ?1 and seq in (select value from json_each(?2))'

/** One more place than asked for, to know whether there is another page. */
export function listSql(tenant: string, filter: TraceFilter): { sql: string; args: InValue[] } {
  const args: InValue[] = [tenant]
  const conditions = ['t.tenant_id = ?1']
  const bind = (value: InValue) => `?${args.push(value)}`
  if (filter.since !== undefined) conditions.push(`t.ts_ms >= ${bind(filter.since.getTime())}`)
  if (filter.until !== undefined) conditions.push(`t.ts_ms < ${bind(filter.until.getTime())}`)
  if (filter.mode !== undefined) conditions.push(`t.mode = ${bind(filter.mode)}`)
  if (filter.route !== undefined) conditions.push(`t.route_ix = ${bind(filter.route)}`)
  if (filter.served_from !== undefined) conditions.push(`t.served_from = ${bind(filter.served_from)}`)
  if (filter.before !== undefined) {
    const [ts, seq, other] = readCursor(filter.before)
    // Rows of the cursor's moment come in the order of their tenants, and of one tenant by seq.
    const sameMoment = tenant === other ? `t.seq < ${bind(seq)}` : tenant < other ? 'true' : 'false'
    conditions.push(`t.ts_ms <= ${bind(ts)}`, `(t.ts_ms < ?${args.length} or ${sameMoment})`)
  }
  const from = filter.session === undefined ? 'traces t' : sessionRows(bind(filter.session))
  const sql = `select t.ts_ms, t.seq from ${from} where ${conditions.join(' and ')}
    order by t.ts_ms desc, t.seq desc limit ${bind(filter.limit + 1)}`
  return { sql, args }
}

function sessionRows(session: string): string {
  return `(with recursive span(low, high) as (
      select (select seq >> 10 from traces where tenant_id = ?1 order by seq limit 1),
             (select seq >> 10 from traces where tenant_id = ?1 order by seq desc limit 1)),
    part(ix) as (select high from span where high is not null union all select ix - 1 from part, span where ix > low)
    select s.* from part cross join traces s indexed by traces_session on s.tenant_id = ?1 and s.seq >> 10 = part.ix and s.session_id = ${session}) t`
}

function readCursor(text: string): [ts: number, seq: number, tenant: string] {
  const match = /^(\d{1,16})\.(\d{1,16})\.([A-Za-z0-9._-]{1,64})$/.exec(text)
  if (match === null) throw new CursorError('expected the `next` of an earlier page')
  return [Number(match[1]), Number(match[2]), match[3] ?? '']
}

function readAad(text: string): [seq: number, tenant: string] {
  const match = /^(\d{1,16})\.([A-Za-z0-9._-]{1,64})$/.exec(text)
  if (match === null) throw new CursorError('expected the `next` of an earlier page')
  return [Number(match[1]), match[2] ?? '']
}

/** Null for one that was overwritten: `verify` names it, and it takes none of the others away. */
function readable<T extends object>(body: string): T | null {
  try {
    return objectIn<T>(body)
  } catch {
    return null
  }
}

/** The last one of a page, and which store it is in. */
function readPlace(text: string): [ix: number, store: number] {
  const match = /^(\d{1,15})(?:\.(\d{1,4}))?$/.exec(text)
  if (match === null) throw new CursorError('expected the `next` of an earlier page')
  return [Number(match[1]), Number(match[2] ?? 0)]
}

function toRecord(body: string): TraceRecord {
  return readRow('this trace', { body }, () => objectIn<TraceRecord>(body), VERIFY)
}

const VERIFY = 'run `router verify`, which names the first record of its chain that fails, and restore a backup'
