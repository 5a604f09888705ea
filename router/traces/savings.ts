import type { InValue } from '@libsql/client/web'
import { type NanoUsd, toUsd } from '../../shared/money/money.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Savings, SavingsGroup } from '../../shared/wire/router/savings.ts'
import type { traces } from '../schema/tables.ts'
import type { StoredChain } from './stored-records.ts'

export interface Window {
  tenant?: string | undefined
  since?: Date | undefined
  until?: Date | undefined
}

const keys: Record<SavingsGroup, string> = {
  route: "coalesce(cast(route_ix as text), 'none')",
  model: "coalesce(served_model, 'none')",
  day: "date(ts_ms / 1000, 'unixepoch')",
}

const DAY_MS = 86_400_000

/** Sums of whole nano-USD over the time index; records without a price are counted and enter no sum. */
export function savingsSql(
  tenant: string,
  { since, until }: Window,
  group?: SavingsGroup,
): { sql: string; args: InValue[] } {
  const priced = 'total_nano is not null and baseline_nano is not null'
  const calibrated = `${priced} and calibrated_nano is not null`
  const key = group === undefined ? "''" : keys[group]
  return {
    sql: `select ${key} as key, count(*) as requests, count(*) filter (where not (${priced})) as unpriced,
        coalesce(sum(total_nano) filter (where ${priced}), 0) as spent,
        coalesce(sum(gate_nano) filter (where ${priced}), 0) as gate,
        coalesce(sum(baseline_nano) filter (where ${priced}), 0) as baseline,
        count(*) filter (where ${calibrated}) as calibrated_requests,
        coalesce(sum(calibrated_nano) filter (where ${calibrated}), 0) as calibrated,
        coalesce(sum(total_nano) filter (where ${calibrated}), 0) as calibrated_spent
      from traces indexed by traces_time where tenant_id = ? and ts_ms >= ? and ts_ms < ? group by 1`,
    args: [tenant, since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER],
  }
}

/** The day of a time after the year 9999 is null. */
type SumsRow = { key: string | null } & Record<
  'requests' | 'unpriced' | 'spent' | 'gate' | 'baseline' | 'calibrated_requests' | 'calibrated' | 'calibrated_spent',
  number
>

interface Sums {
  requests: number
  unpriced: number
  spent: NanoUsd
  gate: NanoUsd
  baseline: NanoUsd
  calibratedRequests: number
  calibrated: NanoUsd
  calibratedSpent: NanoUsd
}

/** `GET /-/savings`, but for the interval of the measured ratio. Read day by day, so that a long window never holds up the process for long. */
export async function savings(chains: readonly StoredChain[], window: Window, group?: SavingsGroup): Promise<Savings> {
  const total = zero()
  const groups = new Map<string, Sums>()
  for (const { db, tenant } of chains) {
    for await (const part of days(db, tenant, window)) {
      const answer = await db.execute(savingsSql(tenant, part, group))
      for (const row of rowsOf<SumsRow>(answer)) {
        add(total, row)
        if (group === undefined) continue
        const key = row.key ?? 'null'
        const sums = groups.get(key) ?? zero()
        groups.set(key, sums)
        add(sums, row)
      }
    }
  }
  const sorted = [...groups].sort(([a], [b]) =>
    group === 'route' ? Number(a) - Number(b) || (a < b ? -1 : 1) : a < b ? -1 : 1,
  )
  return { ...shown(total), groups: sorted.map(([key, sums]) => ({ key, ...shown(sums) })) }
}

/** Cuts a window into days in which there is something. */
export async function* days(db: Db, tenant: string, { since, until }: Window): AsyncGenerator<Window> {
  const end = until?.getTime() ?? Number.MAX_SAFE_INTEGER
  for (let from = since?.getTime() ?? 0; ; ) {
    const answer = await db.execute({
      sql: 'select ts_ms from traces where tenant_id = ? and ts_ms >= ? and ts_ms < ? order by ts_ms limit 1',
      args: [tenant, from, end],
    })
    const [first] = rowsOf<Pick<RowOf<typeof traces>, 'ts_ms'>>(answer)
    if (first === undefined) return
    const next = Math.min(end, (Math.floor(first.ts_ms / DAY_MS) + 1) * DAY_MS)
    yield { since: new Date(from), until: new Date(Math.min(next, 8.64e15)) }
    from = next
  }
}

function zero(): Sums {
  return {
    requests: 0,
    unpriced: 0,
    spent: 0,
    gate: 0,
    baseline: 0,
    calibratedRequests: 0,
    calibrated: 0,
    calibratedSpent: 0,
  }
}

function add(sums: Sums, row: SumsRow) {
  sums.requests += row.requests
  sums.unpriced += row.unpriced
  sums.spent += row.spent
  sums.gate += row.gate
  sums.baseline += row.baseline
  sums.calibratedRequests += row.calibrated_requests
  sums.calibrated += row.calibrated
  sums.calibratedSpent += row.calibrated_spent
}

function shown(sums: Sums) {
  const saved = sums.baseline - sums.spent
  return {
    requests: sums.requests,
    spent_usd: toUsd(sums.spent),
    gate_usd: toUsd(sums.gate),
    baseline_same_token_usd: toUsd(sums.baseline),
    savings_usd: toUsd(saved),
    savings_pct: sums.baseline === 0 ? null : (saved / sums.baseline) * 100,
    ...(sums.calibratedRequests > 0 && {
      baseline_calibrated_usd: toUsd(sums.calibrated),
      savings_calibrated_usd: toUsd(sums.calibrated - sums.calibratedSpent),
    }),
    unpriced: sums.unpriced,
  }
}
