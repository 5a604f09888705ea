import type { SandboxLimits } from './driver.ts'

export interface StandbyPoolOptions<Machine> {
  /** The most that wait, of all kinds together. */
  places: number
  /** Kinds with the same key have the same machines. */
  keyOf: (limits: SandboxLimits) => string
  /** A machine that waits, paused. */
  make: (limits: SandboxLimits) => Promise<Machine>
  drop: (machine: Machine) => Promise<void>
}

interface Kind<Machine> {
  limits: SandboxLimits
  starts: number[]
  waiting: Promise<Machine>[]
}

/** A burst beyond it is no reason to have more waiting. */
const MOST_STARTS = 64

/** Machines that wait for what is likely to be asked for next: as many as were asked for at once in the last five minutes. */
export function standbyPool<Machine>({ places, keyOf, make, drop }: StandbyPoolOptions<Machine>) {
  const kinds = new Map<string, Kind<Machine>>()
  const dropping = new Set<Promise<unknown>>()
  let closed = false
  let filling: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  function note(limits: SandboxLimits): Kind<Machine> {
    const key = keyOf(limits)
    const kind = kinds.get(key) ?? { limits, starts: [], waiting: [] }
    kinds.set(key, kind)
    kind.starts.push(performance.now())
    if (kind.starts.length > MOST_STARTS) kind.starts.shift()
    return kind
  }

  function discard(coming: Promise<Machine>): void {
    const gone: Promise<unknown> = coming
      .then(drop)
      .catch(() => undefined)
      .then(() => dropping.delete(gone))
    dropping.add(gone)
  }

  /** Takes away what is too much, and answers a kind that has too few. */
  function settle(): Kind<Machine> | undefined {
    const now = performance.now()
    for (const [key, kind] of kinds) {
      kind.starts = recentStarts(kind.starts, now)
      if (kind.starts.length === 0 && kind.waiting.length === 0) kinds.delete(key)
    }
    const all = [...kinds.values()]
    const wanted = placesOf(
      all.map(({ starts }) => starts),
      places,
    )
    for (const [index, kind] of all.entries()) kind.waiting.splice(wanted[index]!).forEach(discard)
    return closed ? undefined : all.find((kind, index) => kind.waiting.length < wanted[index]!)
  }

  /** One after another: a machine that is made takes a processor from those that work. */
  async function fill(): Promise<void> {
    for (let kind = settle(); kind !== undefined; kind = settle()) {
      const machine = make(kind.limits)
      const { waiting } = kind
      waiting.push(machine)
      try {
        await machine
      } catch (error) {
        const at = waiting.indexOf(machine)
        if (at >= 0) waiting.splice(at, 1)
        throw error
      }
    }
    clearTimeout(timer)
    if (kinds.size === 0 || closed) return
    timer = setTimeout(() => void refill().catch(() => undefined), REMEMBERED_MS)
    timer.unref()
  }

  function refill(): Promise<void> {
    filling ??= fill().finally(() => (filling = undefined))
    return filling
  }

  return {
    /** One that waits, if there is one. `refill` replaces it. */
    take: (limits: SandboxLimits): Promise<Machine> | undefined => note(limits).waiting.shift(),
    refill,
    /** As if one had been asked for; settles when as many wait as shall. */
    prepare(limits: SandboxLimits): Promise<void> {
      note(limits)
      return refill()
    },
    async close(): Promise<void> {
      closed = true
      clearTimeout(timer)
      await filling?.catch(() => undefined)
      for (const { waiting } of kinds.values()) waiting.splice(0).forEach(discard)
      await Promise.all(dropping)
    },
  }
}

/** Each holds memory of the host, and agents choose the sizes of their machines. */
const MOST_TEMPLATES = 8

/** What machines are cloned from, one of each kind: those that were used last, and no more than there are places. One in use stays. */
export function templateShelf<Template>(drop: (template: Template) => Promise<void>, places = MOST_TEMPLATES) {
  /** The one that was used last is the last. */
  const held = new Map<string, { made: Promise<Template>; users: number }>()
  const dropping = new Set<Promise<unknown>>()

  function trim(): void {
    for (const [key, { made, users }] of held) {
      if (held.size <= places) return
      if (users > 0) continue
      held.delete(key)
      const gone: Promise<unknown> = made
        .then(drop)
        .catch(() => undefined)
        .then(() => dropping.delete(gone))
      dropping.add(gone)
    }
  }

  return {
    /** The template is there until the work is done; one that could not be made is made again by the next. */
    async use<Result>(
      key: string,
      make: () => Promise<Template>,
      work: (template: Template) => Promise<Result>,
    ): Promise<Result> {
      const entry = held.get(key) ?? { made: make(), users: 0 }
      held.delete(key)
      held.set(key, entry)
      entry.users++
      entry.made.catch(() => held.get(key) === entry && held.delete(key))
      try {
        return await work(await entry.made)
      } finally {
        entry.users--
        trim()
      }
    },
    settled: async () => void (await Promise.allSettled([...[...held.values()].map(({ made }) => made), ...dropping])),
  }
}

/** How long a burst of starts is remembered. */
const REMEMBERED_MS = 300_000
const BURST_MS = 1000

/** When sandboxes of one kind were asked for, in milliseconds, the latest last. */
type Starts = readonly number[]

/** What is still remembered of them. */
export const recentStarts = (starts: Starts, now: number): number[] => starts.filter(at => now - at < REMEMBERED_MS)

/** As many as were asked for within one second, at the most, of those that are remembered. */
export function burstOf(starts: Starts): number {
  let most = 0
  for (let first = 0, last = 0; last < starts.length; last++) {
    while (starts[last]! - starts[first]! >= BURST_MS) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

/** How many of each kind shall wait, in the order of the kinds: those that were asked for last have the first choice. */
export function placesOf(kinds: readonly Starts[], places: number): number[] {
  const given = kinds.map(() => 0)
  let left = places
  const latestFirst = kinds.map((_, index) => index).toSorted((a, b) => latest(kinds[b]!) - latest(kinds[a]!))
  for (const index of latestFirst) {
    given[index] = Math.min(left, burstOf(kinds[index]!))
    left -= given[index]!
  }
  return given
}

const latest = (starts: Starts) => starts.at(-1) ?? Number.NEGATIVE_INFINITY
