import { type EntryRow, entriesOf, storedPairs, toEntry } from '../../../router/calibrate/calibration-store.ts'
import { calibrationReport, type ReportPair } from '../../../router/calibrate/report.ts'
import { bootstrapMean } from '../../../router/ope/estimate.ts'
import { storedFeedback, storedRecords } from '../../../router/traces/stored-records.ts'
import { verifyRecords } from '../../../router/traces/verify.ts'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { fromUsd } from '../../../shared/money/money.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { capabilities } from '../../../shared/wire/router/capabilities.ts'
import { evals } from '../../../shared/wire/router/evals.ts'
import { savings } from '../../../shared/wire/router/savings.ts'
import { type TraceRecord, traceRecord } from '../../../shared/wire/router/trace.ts'
import { ROUTE_IX, type RouteName, type ServedTasks, serveTasks } from './served-tasks.ts'
import { TASKS } from './tasks.ts'

const DRAWS = 2000
const SEED = 42

/**
 * The known answer of docs/spec/router.md §11 through a router on a socket: all tasks over the ladder, then over each of its models alone, with
 * feedback on every answer. Every figure is read from what the router left: its receipts, its calibration, its API.
 */
export async function knownAnswer(): Promise<Map<string, number>> {
  const served = await serveTasks()
  try {
    const figures = new Map<string, number>()
    await served.run('cascade')
    await ofApi(served, figures)
    await served.run('cheap')
    await served.run('top')
    await served.stop()
    await ofReceipts(served.db, figures)
    await ofPairs(served.db, 'served', 'cascade', figures)
    await ofPairs(served.db, 'rung 0', 'cheap', figures)
    const report = await verifyRecords({
      records: storedRecords(served.db),
      feedback: storedFeedback(served.db),
      sha256: nativeSha256,
    })
    figures.set('the chains of receipts and feedback hold', report.valid && report.records === 3 * TASKS.length ? 1 : 0)
    return figures
  } finally {
    await served.close()
  }
}

/** While only the ladder has been used. */
async function ofApi({ origin }: ServedTasks, figures: Map<string, number>): Promise<void> {
  const get = async (path: string): Promise<unknown> => (await fetch(origin + path)).json()
  let found = evals.parse(await get('/-/evals'))
  // The last receipts are on their way to the store.
  while (found.requests < TASKS.length) found = evals.parse(await get('/-/evals'))
  figures.set('evals: requests', found.requests)
  figures.set('evals: escalations', found.escalations)
  for (const rung of ['0', '1']) figures.set(`evals: served by rung ${rung}`, found.served_by_rung[rung] ?? 0)
  figures.set('evals: gate pass', found.gates[0]?.pass ?? 0)
  figures.set('evals: gate fail', found.gates[0]?.fail ?? 0)
  figures.set('evals: outcomes reported', found.outcomes.reported)
  figures.set('evals: outcomes failed', found.outcomes.failed)
  const sums = savings.parse(await get('/-/savings'))
  figures.set('savings: spent, nano-USD', fromUsd(sums.spent_usd))
  figures.set('savings: baseline, nano-USD', fromUsd(sums.baseline_same_token_usd))
  figures.set('savings: saved, nano-USD', fromUsd(sums.savings_usd))
  const { calibration } = capabilities.parse(await get('/v1/capabilities'))
  const own = calibration.find(({ route_ix }) => route_ix === ROUTE_IX.cascade)
  figures.set('capabilities: pairs of the route', own?.n ?? 0)
  const page = await (await fetch(`${origin}/metrics`)).text()
  const gauge = /^router_realized_served_failure (\S+)$/m.exec(page)
  figures.set('metrics: router_realized_served_failure', Number(gauge?.[1]))
}

interface Outcome {
  trace: TraceRecord
  right: boolean
  nano: number
}

async function ofReceipts(db: Db, figures: Map<string, number>): Promise<void> {
  const rows = rowsOf<{ body: string }>(await db.execute('select body from traces order by seq'))
  const all = rows.map(row => traceRecord.parse(JSON.parse(row.body)))
  const cascade = outcomesOf(all, 'cascade')
  const cheap = outcomesOf(all, 'cheap')
  const top = outcomesOf(all, 'top')
  const count = (holds: (one: Outcome, i: number) => boolean) => cascade.filter(holds).length
  const nano = (of: readonly Outcome[]) => of.reduce((sum, one) => sum + one.nano, 0)
  const attempts = cascade.flatMap(({ trace }) => trace.attempts)
  const sum = (field: 'baseline_same_token_usd' | 'savings_usd') =>
    cascade.reduce((all, { trace }) => all + fromUsd(trace.final[field] ?? Number.NaN), 0)
  const set = (name: string, value: number) => figures.set(name, value)

  set('attempts', attempts.length)
  set('gate pass', attempts.filter(({ gate }) => gate === 'pass').length)
  set('gate fail', attempts.filter(({ gate }) => gate === 'fail').length)
  set(
    'escalations',
    cascade.reduce((sum, { trace }) => sum + trace.final.escalations, 0),
  )
  for (const rung of [0, 1])
    set(
      `served by rung ${rung}`,
      count(({ trace }) => trace.final.served_rung === rung),
    )
  for (const from of ['attempt', 'best_attempt'] as const) {
    set(
      `served from ${from}`,
      count(({ trace }) => trace.final.served_from === from),
    )
  }
  set(
    'errors',
    count(({ trace }) => trace.final.status !== 200),
  )
  set('total cost, nano-USD', nano(cascade))
  set(
    'served correct',
    count(({ right }) => right),
  )
  set(
    'served failed',
    count(({ right }) => !right),
  )
  set('always rung 0, right', cheap.filter(({ right }) => right).length)
  set('always rung 0, nano-USD', nano(cheap))
  set('always rung 1, right', top.filter(({ right }) => right).length)
  set('always rung 1, nano-USD', nano(top))
  for (const [name, other] of [
    ['top', top],
    ['cheap', cheap],
  ] as const) {
    set(
      `won against always ${name}`,
      count(({ right }, i) => right && !other[i]!.right),
    )
    set(
      `lost against always ${name}`,
      count(({ right }, i) => !right && other[i]!.right),
    )
  }
  set('baseline_same_token, nano-USD', sum('baseline_same_token_usd'))
  set('savings_usd, nano-USD', sum('savings_usd'))
  set('true saving, nano-USD', nano(top) - nano(cascade))

  const interval = (name: string, value: (one: Outcome, i: number) => number) => {
    const [low, high] = bootstrapMean(cascade.map(value), DRAWS, SEED)
    set(`bootstrap ${name}, low`, low)
    set(`bootstrap ${name}, high`, high)
  }
  interval('success', ({ right }) => Number(right))
  interval('success against top', ({ right }, i) => Number(right) - Number(top[i]!.right))
  interval('USD a task against top', (one, i) => (one.nano - top[i]!.nano) / 1e9)
  interval('success against cheap', ({ right }, i) => Number(right) - Number(cheap[i]!.right))
}

/** In the order of the tasks, which the id of the served answer names. */
function outcomesOf(all: readonly TraceRecord[], route: RouteName): Outcome[] {
  const own = all
    .filter(({ route_ix }) => route_ix === ROUTE_IX[route])
    .map(trace => {
      const [, model, task] = trace.final.response_id?.split('_') ?? []
      return { trace, model: model as 'cheap' | 'top', task: Number(task) }
    })
    .sort((a, b) => a.task - b.task)
  return own.map(({ trace, model, task }) => ({
    trace,
    right: TASKS[task]![model].right,
    nano: fromUsd(trace.final.total_cost_usd ?? Number.NaN),
  }))
}

/** What `router calibrate` says about the pairs that feedback left of a route. */
async function ofPairs(db: Db, name: string, route: RouteName, figures: Map<string, number>): Promise<void> {
  const answer = await db.execute("select json_extract(body, '$.routes') as routes from routing_configs")
  const refs = JSON.parse(rowsOf<{ routes: string }>(answer)[0]!.routes) as { fingerprint: string }[]
  const { fingerprint } = refs[ROUTE_IX[route]]!
  const entries = rowsOf<EntryRow>(await db.execute(entriesOf(undefined))).map(toEntry)
  const entry = entries.find(({ routeFp }) => routeFp === fingerprint)!
  const pairs: ReportPair[] = []
  for await (const pair of storedPairs(db, entry.tenantId, entry.routeFp)) pairs.push(pair)
  const claim = { alpha: 0.1, delta: 0.05, minN: 30, bet: 0.5, holdout: 0 }
  const ltt = calibrationReport(pairs, { ...claim, method: 'ltt' })
  for (const { lambda, n, failures, ucb, p } of ltt.table) {
    figures.set(`${name} from ${lambda}: n`, n)
    figures.set(`${name} from ${lambda}: failed`, failures)
    figures.set(`${name} from ${lambda}: Hoeffding bound`, ucb ?? Number.NaN)
    figures.set(`${name} from ${lambda}: p`, p ?? Number.NaN)
  }
  figures.set(`${name}, ltt certifies from`, ltt.threshold ?? Number.NaN)
  const conformal = calibrationReport(pairs, { ...claim, method: 'conformal' })
  figures.set(`${name}, conformal certifies from`, conformal.threshold ?? Number.NaN)
}
