import type { InValue } from '@libsql/client/web'
import { type NanoUsd, toUsd } from '../../shared/money/money.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
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

/** The same of days that are summed up. */
const dayKeys: Record<SavingsGroup, string> = {
  route: 'route',
  model: 'model',
  day: "date(day * 86400, 'unixepoch')",
}

export const sumColumns = [
  'requests',
  'unpriced',
  'spent',
  'gate',
  'baseline',
  'calibrated_requests',
  'calibrated',
  'calibrated_spent',
] as const

const priced = 'total_nano is not null and baseline_nano is not null'
const calibrated = `${priced} and calibrated_nano is not null`

/** Of records, in the order of the columns: those without a price are counted and enter no sum. */
export const sums = `count(*) as requests, count(*) filter (where not (${priced})) as unpriced,
        coalesce(sum(total_nano) filter (where ${priced}), 0) as spent,
        coalesce(sum(gate_nano) filter (where ${priced}), 0) as gate,
        coalesce(sum(baseline_nano) filter (where ${priced}), 0) as baseline,
        count(*) filter (where ${calibrated}) as calibrated_requests,
        coalesce(sum(calibrated_nano) filter (where ${calibrated}), 0) as calibrated,
        coalesce(sum(total_nano) filter (where ${calibrated}), 0) as calibrated_spent`

/** Sums of whole nano-USD over the time index. */
export function savingsSql(
  tenant: string,
  { since, until }: Window,
  group?: SavingsGroup,
): { sql: string; args: InValue[] } {
  const key = group === undefined ? "''" : keys[group]
  return {
    sql: `select ${key} as key, ${sums}
      from traces indexed by traces_time where tenant_id = ? and ts_ms >= ? and ts_ms < ? group by 1`,
    args: [tenant, since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER],
  }
}

/** The day of a time after the year 9999 is null. */
type SumsRow = { key: string | null } & Record<(typeof sumColumns)[number], number>

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

/**
 * `GET /-/savings`, but for the interval of the measured ratio. Days that are over come from their sums, the others are read in stretches, so that
 * a long window or a busy day never holds up the process for long.
 */
export async function savings(chains: readonly StoredChain[], window: Window, group?: SavingsGroup): Promise<Savings> {
  const total = zero()
  const groups = new Map<string, Sums>()
  function take(row: SumsRow): void {
    add(total, row)
    if (group === undefined) return
    const key = row.key ?? 'null'
    const sums = groups.get(key) ?? zero()
    groups.set(key, sums)
    add(sums, row)
  }
  for (const { db, tenant } of chains) {
    const summed = rowsOf<SumsRow & { day: number }>(await db.execute(summedSql(tenant, window, group)))
    for (const row of summed) take(row)
    const closed = new Set(summed.map(({ day }) => day))
    for await (const part of stretches(db, tenant, window, closed)) {
      for (const row of rowsOf<SumsRow>(await db.execute(savingsSql(tenant, part, group)))) take(row)
    }
  }
  const sorted = [...groups].sort(([a], [b]) =>
    group === 'route' ? Number(a) - Number(b) || (a < b ? -1 : 1) : a < b ? -1 : 1,
  )
  return { ...shown(total), groups: sorted.map(([key, sums]) => ({ key, ...shown(sums) })) }
}

/** The sums of the days that are in a window as a whole. */
function summedSql(tenant: string, { since, until }: Window, group?: SavingsGroup): { sql: string; args: InValue[] } {
  const first = Math.ceil((since?.getTime() ?? 0) / DAY_MS)
  const last = until === undefined ? Number.MAX_SAFE_INTEGER : dayOf(until.getTime()) - 1
  return {
    sql: `select day, ${group === undefined ? "''" : dayKeys[group]} as key, ${sumColumns.map(name => `sum(${name}) as ${name}`).join(', ')}
      from savings_days where tenant_id = ? and day >= ? and day <= ? group by 1, 2`,
    args: [tenant, first, last],
  }
}

/** So many records are read in some milliseconds. */
const STRETCH = 2000

/**
 * Cuts a window into stretches of a day in which there is something, but for the closed days, and lets the process do other things between
 * them: the driver of a file answers before anything else is done.
 */
export async function* stretches(
  db: Db,
  tenant: string,
  { since, until }: Window,
  closed: ReadonlySet<number> = new Set(),
): AsyncGenerator<Window> {
  const end = until?.getTime() ?? Number.MAX_SAFE_INTEGER
  for (let from = since?.getTime() ?? 0; ; ) {
    while (closed.has(dayOf(from))) from = (dayOf(from) + 1) * DAY_MS
    const first = await timeOf(db, tenant, from, end, 0)
    if (first === undefined) return
    const dayEnd = Math.min(end, (dayOf(first) + 1) * DAY_MS)
    if (closed.has(dayOf(first))) {
      from = dayEnd
      continue
    }
    const next = Math.max(first + 1, (await timeOf(db, tenant, first, dayEnd, STRETCH)) ?? dayEnd)
    yield { since: new Date(from), until: new Date(Math.min(next, 8.64e15)) }
    await pageTurn()
    from = next
  }
}

/** The time of the first record in a window, or of one so many behind it. */
async function timeOf(db: Db, tenant: string, from: number, end: number, skip: number): Promise<number | undefined> {
  const answer = await db.execute({
    sql: 'select ts_ms from traces indexed by traces_time where tenant_id = ? and ts_ms >= ? and ts_ms < ? order by ts_ms limit 1 offset ?',
    args: [tenant, from, end, skip],
  })
  return rowsOf<Pick<RowOf<typeof traces>, 'ts_ms'>>(answer)[0]?.ts_ms
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

export const DAY_MS = 86_400_000

/** Days in UTC, counted from 1970. */
export const dayOf = (ms: number): number => Math.floor(ms / DAY_MS)
