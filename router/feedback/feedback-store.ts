import type { InStatement } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import type { Sealed } from '../../shared/sign/record-chain.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import type { FeedbackRecord } from '../../shared/wire/router/feedback.ts'
import type { CalibrationCache, VersionCell } from '../calibrate/calibration-cache.ts'
import { type Entry, putEntry } from '../calibrate/calibration-store.ts'
import type { calibration } from '../schema/tables.ts'
import { type Known, type Report, recordText, type Settled, type Tally, traceKey, wordKey } from './settle.ts'

// One statement for all, a JSON text for each: preparing one costs more than running it (measured: 0.1 to 0.2 ms), and a single
// statement sees one moment. The head of a chain is its last row, or where pruning cut it.
const knownSql = `select
  (select json_group_array(json_array(one.value, coalesce(
      (select json_array(seq, hash) from feedback f where f.tenant_id = one.value order by seq desc limit 1),
      (select json_array(body ->> 'feedback_seq', body ->> 'feedback_hash') from checkpoints c
        where c.tenant_id = one.value and kind = 'prune' order by ix desc limit 1)))) from json_each(?1) as one) as heads,
  (select json_group_array((select body from feedback f where f.tenant_id = one.value ->> 0 and f.trace_id = one.value ->> 1
      and f.gate_id = one.value ->> 2 and f.reporter = one.value ->> 3 order by f.seq desc limit 1)) from json_each(?2) as one) as words,
  (select json_group_array(json_array(o.tenant_id, o.trace_id, o.route_fp, o.ix, o.rung, o.score, o.fails, o.passes))
    from json_each(?3) as one join outcomes o on o.tenant_id = one.value ->> 0 and o.trace_id = one.value ->> 1) as tallies,
  (select json_group_array(json_array(tenant_id, route_fp, version)) from calibration where version > ?4) as versions`

type KnownRow = Record<'heads' | 'words' | 'tallies' | 'versions', string>
type HeadCell = [tenant: string, head: string | null]
type TallyCell = [
  tenant: string,
  trace: string,
  routeFp: string,
  ix: number | null,
  rung: number,
  score: string | null,
  fails: number,
  passes: number,
]

/** What the reports are about, as of one moment; the book learns what other processes changed up to then. */
export async function readKnown(
  db: Db,
  reports: readonly Report[],
  book: CalibrationCache,
): Promise<Omit<Known, 'calibrations'>> {
  const tenants = [...new Set(reports.map(({ subject }) => subject.tenantId))]
  const traces = new Map(reports.map(({ subject: { tenantId, traceId } }) => [traceId, [tenantId, traceId]]))
  const words = [...new Set(reports.map(({ subject, given }) => wordKey(subject, given)))]
  const answer = await db.execute({
    sql: knownSql,
    args: [JSON.stringify(tenants), `[${words.join(',')}]`, JSON.stringify([...traces.values()]), book.seen()],
  })
  const known = rowsOf<KnownRow>(answer)[0]!
  const read = <T>(column: keyof KnownRow) => readJson(known[column]) as T[]
  await book.heard(read<VersionCell>('versions'))
  const bodies = read<string | null>('words')
  return {
    heads: new Map(read<HeadCell>('heads').flatMap(([tenant, head]) => headOf(tenant, head))),
    words: new Map(
      words.flatMap((key, i) => (bodies[i] == null ? [] : [[key, readJson(bodies[i]) as FeedbackRecord]])),
    ),
    tallies: new Map(
      read<TallyCell>('tallies').map(([tenant, trace, routeFp, ix, rung, score, fails, passes]): [string, Tally] => [
        traceKey(tenant, trace),
        { routeFp, ix, rung, score: score === null ? null : Number(score), fails, passes },
      ]),
    ),
  }
}

function headOf(tenant: string, head: string | null): [string, Sealed][] {
  if (head === null) return []
  const [seq, hash] = (typeof head === 'string' ? readJson(head) : head) as [number, string]
  return seq < 0 ? [] : [[tenant, { seq, hash, prev_hash: '' }]]
}

// The place of a row in its chain is its primary key: a row for a place that another process has filled in the meantime is refused, and
// the whole transaction with it, so a chain cannot fork and nothing is built on what has changed since it was read.
const insertFeedback = insertRows('feedback', {
  tenant_id: 'text',
  seq: 'integer',
  feedback_id: 'text',
  trace_id: 'text',
  gate_id: 'text',
  reporter: 'text',
  verdict: 'text',
  ts_ms: 'integer',
  hash: 'text',
  body: 'text',
})

const putOutcomes = insertRows(
  'outcomes',
  {
    tenant_id: 'text',
    trace_id: 'text',
    route_fp: 'text',
    ix: 'integer',
    rung: 'integer',
    score: 'text',
    fails: 'integer',
    passes: 'integer',
    answered_ms: 'integer',
    session: 'text',
  },
  {
    after: `on conflict (tenant_id, trace_id) do update set ix = excluded.ix, fails = excluded.fails, passes = excluded.passes,
      answered_ms = excluded.answered_ms, session = excluded.session`,
  },
)

/** All of a settled lot in one transaction, calibration included; gives the new version of each entry, in their order. */
export async function commitSettled(
  db: Db,
  { records, tallies }: Settled,
  entries: readonly Entry[],
  now: Date,
): Promise<number[]> {
  const statements: InStatement[] = []
  if (records.length > 0) {
    const rows = records.map(record => ({
      tenant_id: record.tenant_id,
      seq: record.seq,
      feedback_id: record.feedback_id,
      trace_id: record.trace_id,
      gate_id: record.gate_id,
      reporter: record.reporter,
      verdict: record.verdict,
      ts_ms: Date.parse(record.ts),
      hash: record.hash,
      body: recordText(record),
    }))
    statements.push(insertFeedback.statement(rows))
  }
  if (tallies.size > 0) {
    const rows = [...tallies.values()].map(({ subject: { tenantId, traceId, answeredMs }, session, tally }) => ({
      tenant_id: tenantId,
      trace_id: traceId,
      route_fp: tally.routeFp,
      ix: tally.ix,
      rung: tally.rung,
      score: tally.score === null ? null : String(tally.score),
      fails: tally.fails,
      passes: tally.passes,
      answered_ms: answeredMs,
      session,
    }))
    statements.push(putOutcomes.statement(rows))
  }
  const own = statements.length
  statements.push(...entries.map(entry => putEntry(entry, now)))
  const results = await db.write(statements)
  return results.slice(own).map(answer => rowsOf<Pick<RowOf<typeof calibration>, 'version'>>(answer)[0]!.version)
}
