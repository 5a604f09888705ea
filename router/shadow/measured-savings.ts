import { toUsd } from '../../shared/money/money.ts'
import { type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Savings } from '../../shared/wire/router/savings.ts'
import { DRAWS, interval95, resampledSums } from '../ope/estimate.ts'
import type { shadows } from '../schema/tables.ts'
import type { StoredChain } from '../traces/stored-records.ts'
import { FEWEST } from './shadow-sums.ts'

/** The newest samples of a window are enough for its interval. */
const MOST = 10_000
const SEED = 45

type Row = Pick<RowOf<typeof shadows>, 'ts_ms' | 'same_nano' | 'top_nano' | 'spent_nano'>

interface Window {
  since?: Date | undefined
  until?: Date | undefined
}

/** What the samples of a window measured: the top rung's cost beside the same tokens at its prices, and how sure their ratio is. */
export async function measuredSavings(
  chains: readonly StoredChain[],
  { since, until }: Window,
): Promise<Pick<Savings, 'shadow' | 'ratio_ci'>> {
  const stores = [...Map.groupBy(chains, ({ db }) => db)]
  const found = await Promise.all(
    stores.map(async ([db, own]) => {
      const tenants = JSON.stringify(own.map(({ tenant }) => tenant))
      const answer = await db.execute({
        sql: `select ts_ms, same_nano, top_nano, spent_nano from shadows
          where tenant_id in (select value from json_each(?)) and ts_ms >= ? and ts_ms < ? order by ts_ms desc limit ${MOST}`,
        args: [tenants, since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER],
      })
      return rowsOf<Row>(answer)
    }),
  )
  const rows = found.length === 1 ? found[0]! : newest(found.flat())
  if (rows.length === 0) return {}
  const column = (name: keyof Row) => Float64Array.from(rows, row => row[name])
  const [same, top] = [column('same_nano'), column('top_nano')]
  const sum = (values: Float64Array) => toUsd(values.reduce((total, value) => total + value, 0))
  const shadow = {
    requests: rows.length,
    spent_usd: sum(column('spent_nano')),
    same_token_usd: sum(same),
    measured_usd: sum(top),
  }
  if (rows.length < FEWEST) return { shadow }
  const [tops, sames] = resampledSums([top, same], DRAWS, SEED)
  return { shadow, ratio_ci: interval95(tops!.map((value, draw) => value / sames![draw]!)) }
}

const newest = (rows: readonly Row[]): Row[] => rows.toSorted((a, b) => b.ts_ms - a.ts_ms).slice(0, MOST)
