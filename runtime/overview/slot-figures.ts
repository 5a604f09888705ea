import type { RunErrorCode } from '../../shared/wire/runtime/run.ts'

/** Runs that ended in one slot, of one agent, model, status and cause. */
export interface EndedGroup {
  agentName: string
  model: string | null
  status: 'succeeded' | 'failed' | 'cancelled'
  code: RunErrorCode | null
  runs: number
  costNano: number
}

/** What one slot of time holds: its runs by group, and how many took how long. */
export interface SlotFigures {
  groups: readonly EndedGroup[]
  /** Durations in milliseconds cut to two digits, each with the number of its runs. */
  durations: ReadonlyMap<number, number>
}

export interface Ended {
  succeeded: number
  failed: number
  cancelled: number
  costNano: number
}

export function endedOf(groups: Iterable<EndedGroup>): Ended {
  const sum: Ended = { succeeded: 0, failed: 0, cancelled: 0, costNano: 0 }
  for (const { status, runs, costNano } of groups) {
    sum[status] += runs
    sum.costNano += costNano
  }
  return sum
}

/** Where the durations of a bucket lie: its middle, since all that is known of them are two digits. */
function middle(bucket: number): number {
  let width = 1
  for (let left = bucket; left >= 100; left = Math.floor(left / 10)) width *= 10
  return bucket + (width - 1) / 2
}

/** The duration below or at which that part of the runs lies; within 5 % of the exact one. Null where there are none. */
export function percentile(slots: readonly Pick<SlotFigures, 'durations'>[], part: number): number | null {
  const counts = new Map<number, number>()
  for (const { durations } of slots) {
    for (const [bucket, runs] of durations) counts.set(bucket, (counts.get(bucket) ?? 0) + runs)
  }
  const sorted = [...counts].toSorted(([a], [b]) => a - b)
  const all = sorted.reduce((sum, [, runs]) => sum + runs, 0)
  if (all === 0) return null
  let passed = 0
  for (const [bucket, runs] of sorted) {
    passed += runs
    if (passed >= Math.ceil(all * part)) return middle(bucket)
  }
  return null
}

export interface Part extends Ended {
  /** Undefined: what the parts with names leave over. */
  name: string | undefined
  /** One for each slot. */
  costs: readonly number[]
}

/** The runs of each slot by what `nameOf` says of them: the most costly parts, and one for all the others. */
export function partsOf(
  slots: readonly SlotFigures[],
  nameOf: (group: EndedGroup) => string,
  most: number,
): readonly Part[] {
  const names = Map.groupBy(
    slots.flatMap(({ groups }) => groups),
    nameOf,
  )
  const sums = [...names].map(([name, groups]) => ({ name, ...endedOf(groups) }))
  const runs = (one: Ended) => one.succeeded + one.failed + one.cancelled
  const sorted = sums.toSorted((a, b) => b.costNano - a.costNano || runs(b) - runs(a) || (a.name < b.name ? -1 : 1))
  const shown = sorted.slice(0, sorted.length > most ? most - 1 : most)
  const rank = new Map(shown.map(({ name }, at) => [name, at]))
  const costs = [...shown, undefined].map(() => slots.map(() => 0))
  const others: EndedGroup[] = []
  slots.forEach(({ groups }, slot) => {
    for (const group of groups) {
      const at = rank.get(nameOf(group)) ?? shown.length
      costs[at]![slot]! += group.costNano
      if (at === shown.length) others.push(group)
    }
  })
  return [
    ...shown.map((one, at) => ({ ...one, costs: costs[at]! })),
    ...(others.length === 0 ? [] : [{ name: undefined, ...endedOf(others), costs: costs[shown.length]! }]),
  ]
}

export interface Cause {
  code: RunErrorCode
  agentName: string
  runs: number
}

/** Failed runs by cause and agent, the most frequent first. */
export function causesOf(slots: readonly SlotFigures[]): readonly Cause[] {
  const causes = new Map<string, Cause>()
  for (const { status, code, agentName, runs } of slots.flatMap(({ groups }) => groups)) {
    if (status !== 'failed' || code === null) continue
    const key = `${code} ${agentName}`
    const known = causes.get(key) ?? { code, agentName, runs: 0 }
    causes.set(key, { code, agentName, runs: known.runs + runs })
  }
  return [...causes.values()].toSorted((a, b) => b.runs - a.runs || (a.code < b.code ? -1 : 1))
}
