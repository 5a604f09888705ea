import { availableParallelism, cpus, loadavg } from 'node:os'

/** One way of doing the work. A round does a fixed amount of it and returns the figure in the bench's unit; more is better. */
export interface Variant {
  name: string
  round: () => Promise<number>
}

/** A single number beside the variants, such as a latency. */
export interface Figure {
  name: string
  value: number
  unit: string
  /** A count that must not be rounded when it is shown. */
  exact?: boolean
}

export interface Prepared {
  /** The first one is what the others are compared with. */
  variants: Variant[]
  /** Measured once, after the rounds. */
  figures?: () => Promise<Figure[]>
  /** Those that hold only beside what was there, such as peers. */
  expectations?: Expectation[]
  close: () => Promise<void>
}

export interface BenchOptions {
  /** Measure other products beside ours, in the same rounds. */
  peers: boolean
}

/** What the bench should show. Printed as met or not met; it fails the command only under `--assert`. */
export interface Expectation {
  says: string
  value: (report: Measured) => number
  atLeast?: number
  atMost?: number
}

export interface Bench {
  title: string
  /** What is compared and under which conditions, for a reader of the figures. */
  about: string
  unit: string
  rounds: number
  /** No further round starts after this, counted from the start of the first; three are made whatever they take. */
  roundsWithinMs?: number
  expectations: Expectation[]
  /** Which other products it can be measured beside, and how; without, it has none. */
  peers?: string
  prepare: (options: BenchOptions) => Promise<Prepared>
}

export interface Spread {
  median: number
  q1: number
  q3: number
  min: number
  max: number
}

export interface Measured {
  variants: ({ name: string } & Spread)[]
  /** Each variant over the first one, computed within each round and then summarised. */
  ratios: ({ name: string; over: string } & Spread)[]
  figures: Figure[]
}

export interface Report extends Measured {
  bench: string
  title: string
  about: string
  unit: string
  rounds: number
  machine: { node: string; cores: number; cpu: string; loadBefore: number; loadAfter: number }
  expectations: { says: string; value: number; bound: string; met: boolean }[]
}

const LEAST_ROUNDS = 3

/**
 * Runs the variants in turn, A B A B …, after one round of each that is not counted. The machine is shared: what slows one round of A
 * slows the round of B beside it, so ratios are taken pair by pair and only then summarised.
 */
export async function runBench(
  name: string,
  bench: Bench,
  { rounds = bench.rounds, peers = false }: { rounds?: number | undefined; peers?: boolean } = {},
): Promise<Report> {
  const loadBefore = loadavg()[0] ?? 0
  const prepared = await bench.prepare({ peers })
  try {
    const values = prepared.variants.map((): number[] => [])
    const began = performance.now()
    let made = 0
    for (let round = -1; round < rounds; round++) {
      if (round >= LEAST_ROUNDS && performance.now() - began > (bench.roundsWithinMs ?? Number.POSITIVE_INFINITY)) break
      made = round + 1
      for (const [index, variant] of prepared.variants.entries()) {
        const value = await variant.round()
        if (round >= 0) values[index]?.push(value)
      }
    }
    const figures = (await prepared.figures?.()) ?? []
    const measured = {
      ...compare(
        prepared.variants.map(variant => variant.name),
        values,
      ),
      figures,
    }
    return {
      bench: name,
      title: bench.title,
      about: peers && bench.peers !== undefined ? `${bench.about} ${bench.peers}` : bench.about,
      unit: bench.unit,
      rounds: made,
      machine: {
        node: process.version,
        cores: availableParallelism(),
        cpu: cpus()[0]?.model.trim() ?? 'unknown',
        loadBefore,
        loadAfter: loadavg()[0] ?? 0,
      },
      ...measured,
      expectations: [...bench.expectations, ...(prepared.expectations ?? [])].map(one => judge(one, measured)),
    }
  } finally {
    await prepared.close()
  }
}

/** `values[variant][round]`, the first variant being the base of the ratios. */
export function compare(names: string[], values: number[][]): Pick<Measured, 'variants' | 'ratios'> {
  const [baseName = '', ...otherNames] = names
  const base = values[0] ?? []
  return {
    variants: names.map((name, index) => ({ name, ...spread(values[index] ?? []) })),
    ratios: otherNames.map((name, index) => ({
      name,
      over: baseName,
      ...spread((values[index + 1] ?? []).map((value, round) => value / (base[round] ?? Number.NaN))),
    })),
  }
}

export function judge(
  { says, value, atLeast, atMost }: Expectation,
  measured: Measured,
): Report['expectations'][number] {
  const found = value(measured)
  const met = (atLeast === undefined || found >= atLeast) && (atMost === undefined || found <= atMost)
  return { says, value: found, bound: boundText(atLeast, atMost), met }
}

function boundText(atLeast: number | undefined, atMost: number | undefined): string {
  // Twelve digits say what was written, without the last bits of a sum.
  const [least, most] = [atLeast, atMost].map(bound => (bound === undefined ? '' : String(+bound.toPrecision(12))))
  if (least && least === most) return `exactly ${least}`
  return [least && `≥ ${least}`, most && `≤ ${most}`].filter(Boolean).join(', ')
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    q1: quantile(sorted, 0.25),
    q3: quantile(sorted, 0.75),
    min: quantile(sorted, 0),
    max: quantile(sorted, 1),
  }
}

/** Of values in ascending order, with linear interpolation between neighbours. */
export function quantile(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  if (below === undefined || above === undefined) return Number.NaN
  return below + (above - below) * (place - Math.floor(place))
}

/** The median ratio of a variant over the first one, or over the one named; for expectations. */
export function ratioOf(measured: Measured, name: string, over?: string): number {
  const ratio = measured.ratios.find(one => one.name === name)?.median ?? Number.NaN
  return over === undefined ? ratio : ratio / ratioOf(measured, over)
}
