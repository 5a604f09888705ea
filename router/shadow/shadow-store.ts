import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import type { shadows } from '../schema/tables.ts'
import type { ShadowSums } from './shadow-sums.ts'

const insert = insertRows(
  'shadows',
  {
    tenant_id: 'text',
    trace_id: 'text',
    route_fp: 'text',
    ts_ms: 'integer',
    served_in: 'integer',
    served_out: 'integer',
    top_in: 'integer',
    top_out: 'integer',
    same_nano: 'integer',
    top_nano: 'integer',
    spent_nano: 'integer',
  },
  { after: 'on conflict do nothing' },
)

export type ShadowRow = Parameters<typeof insert.statement>[0][number]

type SumRow = Pick<RowOf<typeof shadows>, 'tenant_id' | 'route_fp'> &
  Record<'n' | 'servedIn' | 'servedOut' | 'topIn' | 'topOut', number>

/** The samples behind the calibrated baseline, beside the traces that they measure. */
export function shadowStore(db: Db) {
  return {
    async put(row: ShadowRow): Promise<void> {
      await db.execute(insert.statement([row]))
    },
    async fill(book: ShadowSums): Promise<void> {
      const answer = await db.execute(
        `select tenant_id, route_fp, count(*) as n, sum(served_in) as servedIn, sum(served_out) as servedOut,
          sum(top_in) as topIn, sum(top_out) as topOut from shadows group by tenant_id, route_fp`,
      )
      for (const { tenant_id, route_fp, n, ...pair } of rowsOf<SumRow>(answer)) book.add(tenant_id, route_fp, pair, n)
    },
  }
}
