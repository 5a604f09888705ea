import { toUsd } from '../../shared/money/money.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import type { Overview, OverviewFigures, OverviewRange } from '../../shared/wire/runtime/overview.ts'
import { causesOf, type Ended, endedOf, type Part, partsOf, percentile, type SlotFigures } from './slot-figures.ts'
import type { OpenRuns, OverviewStore } from './store.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Each range in slots, the last of which holds the present. */
const RANGES: Readonly<Record<OverviewRange, { slotMs: number; slots: number }>> = {
  '1h': { slotMs: 5 * MINUTE_MS, slots: 12 },
  '24h': { slotMs: HOUR_MS, slots: 24 },
  '7d': { slotMs: 6 * HOUR_MS, slots: 28 },
  '30d': { slotMs: 24 * HOUR_MS, slots: 30 },
}

/** An answer is given to all callers for so long, and for longer where it took long: it costs at most a fiftieth of a core. */
const ANSWER_MS = 2000
const SHARE = 50
/** The end of a run may be reported late, by a node that was away. After that a slot is read again only now and then, for deleted runs. */
const LATE_MS = 10 * MINUTE_MS
const SETTLED_MS = HOUR_MS
const LONGEST_MS = 30_000
const MOST_SLOTS = 4000
const MOST_ANSWERS = 1000
const MOST_PARTS = 6
const MOST_CAUSES = 20

export interface OverviewAnswer {
  overview: Overview
  etag: string
}

export interface OverviewServiceDeps {
  store: OverviewStore
  clock: Pick<Clock, 'now' | 'monotonic'>
  /** The calendar day that usage is counted on. */
  dayOf: (ms: number) => string
}

export type OverviewService = ReturnType<typeof overviewService>

/** How the runs of a tenant went lately, worked out once for all who ask. */
export function overviewService({ store, clock, dayOf }: OverviewServiceDeps) {
  const slots = new Map<string, { untilMs: number; figures: SlotFigures }>()
  const answers = new Map<string, { untilMs: number; answer: Promise<OverviewAnswer> }>()

  async function figuresOfTime(
    read: 'slot' | 'sum',
    tenantId: string,
    fromMs: number,
    toMs: number,
  ): Promise<SlotFigures> {
    const nowMs = clock.now().getTime()
    const key = `${read} ${tenantId} ${fromMs} ${toMs}`
    const known = slots.get(key)
    if (known && known.untilMs > nowMs) return known.figures
    const figures = await store[read](tenantId, fromMs, toMs)
    // A store in this process answers without letting other work in.
    await pageTurn()
    slots.delete(key)
    if (toMs + LATE_MS < nowMs) remember(slots, MOST_SLOTS, key, { untilMs: nowMs + SETTLED_MS, figures })
    return figures
  }

  async function compute(tenantId: string, range: OverviewRange): Promise<OverviewAnswer> {
    const { slotMs, slots: count } = RANGES[range]
    const nowMs = clock.now().getTime()
    const present = Math.floor(nowMs / slotMs) * slotMs
    const starts = Array.from({ length: count }, (_, at) => present - (count - 1 - at) * slotMs)
    // As much of the slot that lies where the present one does as has passed of that.
    const then = present - count * slotMs
    const earlier = [
      // Of the time before nothing but the sum is shown, so that it is read as one.
      await figuresOfTime('sum', tenantId, then - (count - 1) * slotMs, then),
      await store.sum(tenantId, then, then + (nowMs - present) + 1),
    ]
    const found: SlotFigures[] = []
    for (const from of starts) found.push(await figuresOfTime('slot', tenantId, from, from + slotMs))
    const unpricedCalls = await store.unpriced(tenantId, dayOf(starts[0]!), dayOf(nowMs))
    const open = await store.open(tenantId)
    const overview = toOverview({ range, starts, slotMs, found, earlier, unpricedCalls, open })
    return { overview, etag: `"${sha256Hex(utf8(JSON.stringify(overview))).slice(0, 24)}"` }
  }

  return {
    get(tenantId: string, range: OverviewRange): Promise<OverviewAnswer> {
      const key = `${range} ${tenantId}`
      const startedMs = clock.monotonic()
      const known = answers.get(key)
      if (known && known.untilMs > startedMs) return known.answer
      const answer = compute(tenantId, range)
      // Not for ever: on a host that ends what a request does with its connection, this one may never come to an end.
      const entry = { untilMs: startedMs + LONGEST_MS, answer }
      answers.delete(key)
      remember(answers, MOST_ANSWERS, key, entry)
      answer.then(
        () => {
          const endedMs = clock.monotonic()
          entry.untilMs = endedMs + Math.max(ANSWER_MS, SHARE * (endedMs - startedMs))
        },
        // The next caller asks the store again.
        () => answers.get(key) === entry && answers.delete(key),
      )
      return answer
    },
  }
}

/** The entry that was made first goes. */
function remember<T>(entries: Map<string, T>, most: number, key: string, value: T): void {
  if (entries.size >= most) {
    const [first] = entries.keys()
    if (first !== undefined) entries.delete(first)
  }
  entries.set(key, value)
}

interface Found {
  range: OverviewRange
  starts: readonly number[]
  slotMs: number
  found: readonly SlotFigures[]
  earlier: readonly SlotFigures[]
  unpricedCalls: number
  open: OpenRuns
}

const time = (ms: number): string => new Date(ms).toISOString()

function toOverview({ range, starts, slotMs, found, earlier, unpricedCalls, open }: Found): Overview {
  const { oldestQueuedMs, ...openRuns } = open
  const causes = causesOf(found)
  return {
    range,
    from: time(starts[0]!),
    to: time(starts.at(-1)! + slotMs),
    slotMs,
    open: { ...openRuns, ...(oldestQueuedMs !== null && { oldestQueuedAt: time(oldestQueuedMs) }) },
    total: figuresOf(found),
    unpricedCalls,
    before: figuresOf(earlier),
    slots: found.map((slot, at) => ({ from: time(starts[at]!), ...figuresOf([slot]) })),
    agents: partsOf(found, ({ agentName }) => agentName, MOST_PARTS).map(({ name, ...part }) => ({
      ...(name !== undefined && { agentName: name }),
      ...toPart(part),
    })),
    models: partsOf(found, ({ model }) => model ?? NO_MODEL, MOST_PARTS).map(({ name, ...part }) => ({
      ...(name !== undefined && { model: name }),
      ...toPart(part),
    })),
    failures: causes.slice(0, MOST_CAUSES).map(cause => ({ ...cause })),
    failuresOmitted: causes.slice(MOST_CAUSES).reduce((sum, { runs }) => sum + runs, 0),
  }
}

/** Of runs that ended before a model answered. */
const NO_MODEL = 'none'

const toEnded = ({ succeeded, failed, cancelled, costNano }: Ended) => ({
  succeeded,
  failed,
  cancelled,
  costUsd: toUsd(costNano),
})

const toPart = ({ costs, ...ended }: Omit<Part, 'name'>) => ({ ...toEnded(ended), costsUsd: costs.map(toUsd) })

function figuresOf(slots: readonly SlotFigures[]): OverviewFigures {
  return {
    ...toEnded(endedOf(slots.flatMap(({ groups }) => groups))),
    p50Ms: percentile(slots, 0.5),
    p95Ms: percentile(slots, 0.95),
  }
}
