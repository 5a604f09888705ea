import { readJson } from '../../shared/json/read-json.ts'
import { sha256 as portableSha256 } from '../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Checkpoint } from '../../shared/wire/router/checkpoint.ts'
import type { checkpoints } from '../schema/tables.ts'
import { tenantsSql } from './chains.ts'
import type { RecordLine } from './check-stretch.ts'
import { checkpointDigest } from './checkpoint.ts'
import { ExportLineError, toCheckpoint } from './export-line.ts'
import { rowColumns } from './trace-row.ts'

const PAGE = 256
/** The places that a row may have, whatever a chain has. */
const FIRST = -(2 ** 63)
const LAST = 2 ** 63
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface Span {
  tenant?: string | undefined
  since?: Date | undefined
  until?: Date | undefined
}

export async function storedTenants(db: Db): Promise<string[]> {
  return rowsOf<{ tenant_id: string }>(await db.execute(tenantsSql)).map(row => row.tenant_id)
}

/** The time of the record that was written last. */
export async function newestRecordMs(db: Db): Promise<number | undefined> {
  const answer = await db.execute('select ts_ms from traces order by rowid desc limit 1')
  return rowsOf<{ ts_ms: number }>(answer)[0]?.ts_ms
}

/** The chain of a tenant, and the store that it is in. */
export interface StoredChain {
  db: Db
  tenant: string
}

/** The chains of some stores. Of one tenant none is left out: where its chain is, is known by its records. */
export async function storedChains(dbs: readonly Db[], tenant?: string): Promise<StoredChain[]> {
  if (tenant !== undefined) return dbs.map(db => ({ db, tenant }))
  const found = await Promise.all(dbs.map(async db => (await storedTenants(db)).map(id => ({ db, tenant: id }))))
  return found.flat()
}

/** The newest checkpoint behind which something was dropped. */
export async function lastPruning(db: Db, tenant?: string): Promise<number> {
  const sql =
    "select cast(coalesce(max(ix), 0) as real) as ix from checkpoints where kind = 'prune' and tenant_id = coalesce(?, tenant_id)"
  return rowsOf<{ ix: number }>(await db.execute({ sql, args: [tenant ?? null] }))[0]!.ix
}

/** A report on a store that others write to. What is dropped while it is made is missing in it: then it is made again. */
export async function reportOfOneMoment<T extends { valid: boolean }>(
  db: Db,
  tenant: string | undefined,
  make: () => Promise<T>,
): Promise<T> {
  for (;;) {
    const before = await lastPruning(db, tenant)
    const report = await make()
    if (report.valid || (await lastPruning(db, tenant)) === before) return report
  }
}

/** Every record with its columns, for `verify`, tenant by tenant in the order of the chains. */
export async function* storedRecords(db: Db, tenant?: string): AsyncGenerator<RecordLine[]> {
  for (const id of tenant === undefined ? await storedTenants(db) : [tenant]) yield* storedStretch(db, { tenant: id })
}

const columns = `json_array(${rowColumns.join(', ')})`

/** A piece of one chain with its columns; both ends belong to it. */
export async function* storedStretch(db: Db, span: SeqSpan): AsyncGenerator<RecordLine[]> {
  const { tenant: tenantId } = span
  for await (const rows of pages(db, { table: 'traces', columns, ...span })) {
    yield rows.map(({ body, columns }) => ({ tenantId, text: body, columns }))
  }
}

/** Of no rows, neither. */
type Ends = Record<'low' | 'high', number> | Record<'low' | 'high', null>

export interface SeqSpan {
  tenant: string
  from?: number
  to?: number
}

// Each by its own look in the index: both in one would read every record between them. A place that no number stands for is near one.
export const endsSql =
  'select (select cast(min(seq) as real) from traces where tenant_id = ?1) as low, (select cast(max(seq) as real) from traces where tenant_id = ?1) as high'

/** The first and the last place of a chain that has records. */
export async function endsOf(db: Db, tenant: string): Promise<{ low: number; high: number } | undefined> {
  const [row] = rowsOf<Ends>(await db.execute({ sql: endsSql, args: [tenant] }))
  return row === undefined || row.low === null ? undefined : row
}

/** Where a chain goes on behind a place; a gap may be as long as its author likes. */
async function nextPlace(db: Db, tenant: string, behind: number): Promise<number | undefined> {
  const sql = 'select cast(min(seq) as real) as next from traces where tenant_id = ? and seq > ?'
  const [row] = rowsOf<{ next: number | null }>(await db.execute({ sql, args: [tenant, behind] }))
  return row?.next ?? undefined
}

/** The chains of a store cut into pieces of so many places, in order. Behind the first place that is no safe number is one piece. */
export async function seqSpans(db: Db, tenant: string | undefined, size: number): Promise<Required<SeqSpan>[]> {
  const spans: Required<SeqSpan>[] = []
  for (const id of tenant === undefined ? await storedTenants(db) : [tenant]) {
    const ends = await endsOf(db, id)
    if (ends === undefined) continue
    for (let from: number | undefined = ends.low; from !== undefined; ) {
      const to: number = Number.isSafeInteger(from) ? Math.min(from + size - 1, ends.high) : LAST
      spans.push({ tenant: id, from, to })
      from = to < ends.high ? await nextPlace(db, id, to) : undefined
    }
  }
  return spans
}

export async function* storedFeedback(db: Db, tenant?: string): AsyncGenerator<RecordLine[]> {
  for (const id of tenant === undefined ? await storedTenants(db) : [tenant]) {
    for await (const rows of pages(db, { table: 'feedback', columns: feedbackColumns, tenant: id })) {
      yield rows.map(({ body, columns }) => ({ tenantId: id, text: body, columns }))
    }
  }
}

/**
 * The sealed records as lines, as they are stored. A window gives the shortest unbroken piece of each chain that holds all of its
 * records: requests end in another order than they begin, and a chain with holes proves nothing.
 */
export async function* exportRecords(db: Db, { tenant, since, until }: Span = {}): AsyncGenerator<string[]> {
  for (const id of tenant === undefined ? await storedTenants(db) : [tenant]) {
    const window = await seqWindow(db, id, since, until)
    if (window === undefined) continue
    for await (const rows of pages(db, { table: 'traces', tenant: id, ...window })) yield rows.map(({ body }) => body)
  }
}

export async function* exportFeedback(db: Db, { tenant }: Span = {}): AsyncGenerator<string[]> {
  for await (const lot of storedFeedback(db, tenant)) yield lot.map(line => line.text)
}

/** Checkpoints in the order in which they were made, read as strictly as those of an export, and as the columns beside them say. */
export async function storedCheckpoints(db: Db, span: Span = {}): Promise<Checkpoint[]> {
  return (await checkpointRows(db, span)).map(row => {
    let text: string
    try {
      text = decoder.decode(row.body)
    } catch {
      throw new ExportLineError('checkpoint', 'not_json', 'it is not UTF-8')
    }
    const found = toCheckpoint(text)
    const { tenant_id, kind, seq } = found
    const isSame = tenant_id === row.tenant_id && kind === row.kind && seq === row.seq
    if (isSame && checkpointDigest(found, portableSha256) === row.digest) return found
    throw new ExportLineError(
      'checkpoint',
      'columns',
      `the columns of number ${row.ix} say something else than it does`,
    )
  })
}

/** The same as they stand in the store: what was put there is shown to who verifies an export. */
export async function exportCheckpoints(db: Db, span: Span = {}): Promise<string[]> {
  return (await checkpointRows(db, span)).map(({ body }) => new TextDecoder().decode(body))
}

interface CheckpointRow extends Pick<RowOf<typeof checkpoints>, 'ix' | 'tenant_id' | 'kind' | 'seq' | 'digest'> {
  body: ArrayBuffer
}

/** Of a cut piece of a chain, those that name a record up to its end. */
async function checkpointRows(db: Db, { tenant, since, until }: Span): Promise<CheckpointRow[]> {
  const answer = await db.execute({
    // As bytes: the local driver ends the process on text that is no UTF-8.
    sql: `select cast(ix as real) as ix, tenant_id, kind, cast(seq as real) as seq, digest, cast(body as blob) as body from checkpoints
      ${tenant === undefined ? '' : 'where tenant_id = ?'} order by ix`,
    args: tenant === undefined ? [] : [tenant],
  })
  const rows = rowsOf<CheckpointRow>(answer)
  const ends = new Map<string, number>()
  if (until !== undefined) {
    for (const id of new Set(rows.map(row => row.tenant_id))) {
      ends.set(id, (await seqWindow(db, id, since, until))?.to ?? -1)
    }
  }
  return rows.filter(row => row.seq <= (ends.get(row.tenant_id) ?? LAST))
}

async function seqWindow(db: Db, tenant: string, since?: Date, until?: Date) {
  if (since === undefined && until === undefined) return { from: FIRST, to: LAST }
  const answer = await db.execute({
    sql: 'select cast(min(seq) as real) as low, cast(max(seq) as real) as high from traces where tenant_id = ? and ts_ms >= ? and ts_ms < ?',
    args: [tenant, since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER],
  })
  const [row] = rowsOf<Ends>(answer)
  if (row === undefined || row.low === null) return undefined
  return { from: since === undefined ? FIRST : row.low, to: row.high }
}

interface Pages extends SeqSpan {
  table: 'traces' | 'feedback'
  /** Text that goes before each body. */
  columns?: string
}

type PageRow = { count: number } & ({ last: number; page: ArrayBuffer } | { last: null; page: null })

interface StoredRow {
  columns: string
  body: string
}

/**
 * Rows in the order of their chain, a page at a time, so that memory does not grow with the store. A page is one value, `lengths columns body`
 * for each row: handing over 256 values of 2 kB took half of a verification (measured). It is read as bytes, because the local driver ends
 * the whole process on text that is no UTF-8 (tried), which a tampered file may hold.
 */
async function* pages(
  db: Db,
  { table, tenant, columns = "''", from = FIRST, to = LAST }: Pages,
): AsyncGenerator<StoredRow[]> {
  const sql = `select count(*) as count, cast(max(seq) as real) as last,
      cast(group_concat(length(cast(columns as blob)) || ' ' || length(cast(body as blob)) || ' ' || columns || body, '') as blob) as page
    from (select seq, body, ${columns} as columns from ${table}
      where tenant_id = ? and seq >= ? and seq <= ? order by seq limit ${PAGE})`
  for (let next = from; ; ) {
    const [page] = rowsOf<PageRow>(await db.execute({ sql, args: [tenant, next, to] }))
    if (page === undefined || page.last === null) return
    yield cutPage(new Uint8Array(page.page))
    // Behind a place that is no safe number the next one cannot be named; the chain broke before it.
    if (page.count < PAGE || !Number.isSafeInteger(page.last)) return
    next = page.last + 1
  }
}

const SPACE = 0x20

function cutPage(page: Uint8Array<ArrayBuffer>): StoredRow[] {
  // Where every character is one byte, which is nearly always, places in the text are places in the bytes.
  const whole = decoded(page)
  const cut = whole.length === page.length ? (start: number, end: number) => whole.slice(start, end) : undefined
  const text = cut ?? ((start: number, end: number) => decoded(page.subarray(start, end)))
  const found: StoredRow[] = []
  for (let at = 0; at < page.length; ) {
    const first = page.indexOf(SPACE, at)
    const second = page.indexOf(SPACE, first + 1)
    const middle = second + 1 + digits(page, at, first)
    const end = middle + digits(page, first + 1, second)
    found.push({ columns: text(second + 1, middle), body: text(middle, end) })
    at = end
  }
  return found
}

function digits(bytes: Uint8Array, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at++) value = value * 10 + (bytes[at]! - 0x30)
  return value
}

/** What is no UTF-8 becomes a text that is no JSON either, so that it fails where it stands. */
function decoded(bytes: Uint8Array<ArrayBuffer>): string {
  try {
    return decoder.decode(bytes)
  } catch {
    return ''
  }
}

/** The columns that repeat a report, as SQL gives them in one text; counts are made from them. */
const feedbackColumns = 'json_array(tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, ts_ms, hash)'

/** Whether columns say what the report says that they stand beside. */
export function matchesFeedback(columns: string, report: object): boolean {
  const { tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, ts, hash } = report as Record<
    string,
    unknown
  >
  const cells = [tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, Date.parse(String(ts)), hash]
  const expected = JSON.stringify(cells)
  try {
    // SQL and JSON.stringify may escape a character differently; the values decide.
    return columns === expected || JSON.stringify(readJson(columns)) === expected
  } catch {
    return false
  }
}
