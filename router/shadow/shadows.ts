import type { Tokens } from '../../shared/dialects/candidate.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { type NanoUsd, toUsd } from '../../shared/money/money.ts'
import { attemptCost, type Price } from '../../shared/prices/price.ts'
import { joined, utf8 } from '../../shared/sign/bytes.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import { backgroundTasks } from '../../shared/time/background-tasks.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { shadows } from '../schema/tables.ts'
import { pairOf, type Ratios, type ShadowSums, shadowSums } from './shadow-sums.ts'

/** So many run at once; beyond that a sample is left out rather than kept waiting. */
const MOST_RUNNING = 16

export interface Sample {
  tenantId: string
  traceId: string
  route: { fingerprint: string; shadowRate: number }
  /** Of the served attempt, as the provider counted them. */
  served: Tokens
  top: Price
  /** Whether the top rung served it: then there is nothing to call. */
  isTop: boolean
  /** Asks the top rung the same, within the budgets: no tokens where it gave no answer, which may have a cost all the same. */
  askTop: (signal: AbortSignal) => Promise<{ tokens: Tokens | null; cost: NanoUsd }>
}

export interface ShadowDeps {
  db: Db | undefined
  clock: Clock
  log: Log
  metrics: Metrics
  sha256: Sha256
  /** Keeps callers from choosing ids that are sampled. */
  secret: Uint8Array
}

export type Shadows = Pick<Awaited<ReturnType<typeof keepShadows>>, 'consider' | 'ratios'>

/**
 * Runs a share of the served requests on the top rung as well, after their answers, to measure what the top rung really takes
 * (docs/spec/router.md §7.6). What they cost counts against the budgets of who asked; the answers are thrown away.
 */
export async function keepShadows({ db, clock, log, metrics, sha256, secret }: ShadowDeps) {
  const book = shadowSums()
  const store = db && shadowStore(db)
  await store?.fill(book)
  const tasks = backgroundTasks()
  const samples = metrics.counter('router_shadow_samples_total', 'Served requests drawn for the calibrated baseline.')
  const spent = metrics.counter('router_shadow_cost_usd_total', 'Spent on running samples on the top rung.')

  function isDrawn({ traceId, route }: Sample): boolean {
    if (route.shadowRate <= 0) return false
    const digest = sha256(joined([utf8('shadow\0'), secret, utf8(traceId)]))
    const draw = new DataView(digest.buffer, digest.byteOffset, 4).getUint32(0) / 2 ** 32
    return draw < route.shadowRate
  }

  async function run(sample: Sample, signal: AbortSignal): Promise<void> {
    const { tenantId, traceId, route, served, top } = sample
    const answer = sample.isTop
      ? { tokens: served, cost: 0 }
      : await sample.askTop(signal).catch((error: unknown) => {
          log.error('a shadow sample failed', { trace_id: traceId, error })
          return { tokens: null, cost: 0 }
        })
    const { tokens, cost } = answer
    samples.add(1, { outcome: tokens === null ? 'failed' : 'measured' })
    if (cost > 0 || tokens !== null) spent.add(toUsd(cost), { tenant: tenantId })
    if (tokens === null) return
    const pair = pairOf(served, tokens)
    book.add(tenantId, route.fingerprint, pair)
    await store
      ?.put({
        tenant_id: tenantId,
        trace_id: traceId,
        route_fp: route.fingerprint,
        ts_ms: clock.now().getTime(),
        served_in: pair.servedIn,
        served_out: pair.servedOut,
        top_in: pair.topIn,
        top_out: pair.topOut,
        same_nano: attemptCost(top, served),
        top_nano: attemptCost(top, tokens),
        spent_nano: cost,
      })
      .catch((error: unknown) => log.error('a shadow sample could not be stored', { trace_id: traceId, error }))
  }

  return {
    /** Takes the request as a sample when its id is drawn; returns at once. */
    consider(sample: Sample): void {
      if (tasks.closed || !isDrawn(sample)) return
      if (tasks.size >= MOST_RUNNING) {
        samples.add(1, { outcome: 'left_out' })
        return
      }
      tasks.start(signal => run(sample, signal))
    },
    ratios: (tenantId: string, route: string): Ratios | undefined => book.ratios(tenantId, route),
    settled: tasks.settled,
    /** Aborts the samples that run. */
    close: tasks.close,
  }
}

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

type ShadowRow = Parameters<typeof insert.statement>[0][number]

type SumRow = Pick<RowOf<typeof shadows>, 'tenant_id' | 'route_fp'> &
  Record<'n' | 'servedIn' | 'servedOut' | 'topIn' | 'topOut', number>

/** The samples behind the calibrated baseline, beside the traces that they measure. */
function shadowStore(db: Db) {
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
