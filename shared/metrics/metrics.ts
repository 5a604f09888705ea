export type Labels = Readonly<Record<string, string | number>>

export interface Counter {
  add(value?: number, labels?: Labels): void
}
export interface Gauge {
  set(value: number, labels?: Labels): void
  /** Read when the page is asked for, instead of kept up to date. */
  read(source: () => number): void
}
export interface Histogram {
  observe(value: number, labels?: Labels): void
}
export type Metrics = ReturnType<typeof createMetrics>

interface Family {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  print(): string[]
}

/** Distinct values of one label under one name; the next ones are counted as `other`. */
const MAX_LABEL_VALUES = 500

/** Characters of a label's value that are kept: a far end chooses the names of its models. */
const MAX_LABEL_CHARACTERS = 200

/** Series that are found without building their key anew; values that became `other` must not fill the memory. */
const MAX_SPELLINGS = 5000
const MAX_SPELLED_CHARACTERS = 2000

/** Seconds, from 5 ms to 2 min: calls to models and to people's machines. */
export const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]
/** Seconds, from 0.1 ms to 100 ms: what this program itself adds to a call. */
export const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1]

/** A registry of metrics and its Prometheus text page (exposition format 0.0.4). */
export function createMetrics() {
  const families = new Map<string, Family>()

  function register(family: Family): void {
    if (families.has(family.name)) throw new Error(`metric ${family.name} is registered twice`)
    families.set(family.name, family)
  }

  return {
    /** `from` are the series that stand at 0 from the start: what is counted for the first time is then seen as an increase. */
    counter(name: string, help: string, from: readonly Labels[] = []): Counter {
      const series = seriesMap(() => ({ value: 0 }))
      for (const labels of from) series.at(labels)
      register({
        name,
        help,
        type: 'counter',
        print: () => series.print((key, { value }) => [name + key + ' ' + value]),
      })
      return {
        add(value = 1, labels = {}) {
          series.at(labels).value += value
        },
      }
    },

    gauge(name: string, help: string): Gauge {
      const series = seriesMap(() => ({ value: 0 }))
      let source: (() => number) | undefined
      register({
        name,
        help,
        type: 'gauge',
        print: () => (source ? [`${name} ${source()}`] : series.print((key, { value }) => [name + key + ' ' + value])),
      })
      return {
        set(value, labels = {}) {
          series.at(labels).value = value
        },
        read(from) {
          source = from
        },
      }
    },

    histogram(name: string, help: string, buckets: readonly number[] = DURATION_BUCKETS): Histogram {
      const series = seriesMap(() => ({ counts: new Array<number>(buckets.length + 1).fill(0), sum: 0 }))
      register({
        name,
        help,
        type: 'histogram',
        print: () =>
          series.print((key, { counts, sum }) => {
            let running = 0
            const lines = counts.map((count, i) => {
              running += count
              return `${name}_bucket${withLabel(key, 'le', i < buckets.length ? String(buckets[i]) : '+Inf')} ${running}`
            })
            return [...lines, `${name}_sum${key} ${sum}`, `${name}_count${key} ${running}`]
          }),
      })
      return {
        observe(value, labels = {}) {
          const one = series.at(labels)
          const i = buckets.findIndex(bound => value <= bound)
          one.counts[i < 0 ? buckets.length : i]!++
          one.sum += value
        },
      }
    },

    text(): string {
      let out = ''
      for (const { name, help, type, print } of families.values()) {
        out += `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`
        for (const line of print()) out += line + '\n'
      }
      return out
    },
  }
}

function seriesMap<T>(create: () => T) {
  const series = new Map<string, T>()
  const seen = new Map<string, Set<string>>()
  const bySpelling = new Map<string, T>()

  function bounded(label: string, value: string): string {
    const values = seen.get(label) ?? new Set()
    seen.set(label, values)
    if (values.has(value)) return value
    if (values.size >= MAX_LABEL_VALUES) return 'other'
    values.add(value)
    return value
  }

  return {
    at(labels: Labels): T {
      // A call site spells its labels in one order: what it asked for before is found without sorting or escaping.
      let spelled = ''
      for (const label in labels) spelled += `${label}\0${labels[label]}\0`
      const known = bySpelling.get(spelled)
      if (known !== undefined) return known
      const found = find(labels)
      if (bySpelling.size < MAX_SPELLINGS && spelled.length < MAX_SPELLED_CHARACTERS) bySpelling.set(spelled, found)
      return found
    },
    print(line: (key: string, value: T) => string[]): string[] {
      return [...series].flatMap(([key, value]) => line(key, value))
    },
  }

  function find(labels: Labels): T {
    let key = ''
    for (const label of Object.keys(labels).sort()) {
      // Half a surrogate pair is written as U+FFFD: two series must not get one name by that.
      const value = String(labels[label]).slice(0, MAX_LABEL_CHARACTERS).toWellFormed()
      key = withLabel(key, label, bounded(label, value))
    }
    const found = series.get(key)
    if (found !== undefined) return found
    const made = create()
    series.set(key, made)
    return made
  }
}

function withLabel(key: string, label: string, value: string): string {
  const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
  return (key === '' ? '{' : key.slice(0, -1) + ',') + `${label}="${escaped}"}`
}

/** What a host knows of its process. */
export interface HostFacts {
  /** When it started, in milliseconds since 1970. */
  startedMs: number
  residentBytes(): number
  /** Room on the disk that it writes to; undefined where it writes to none. */
  freeBytes: (() => Promise<number>) | undefined
}

/** Gauges of the process, under the names that Prometheus has for them. What they read is looked up when the page is asked for. */
export function hostMetrics(metrics: Metrics, prefix: string, facts: HostFacts): () => Promise<void> {
  metrics
    .gauge('process_start_time_seconds', 'When the process started, in seconds since 1970.')
    .set(facts.startedMs / 1000)
  metrics.gauge('process_resident_memory_bytes', 'Memory that the process holds.').read(facts.residentBytes)
  const { freeBytes } = facts
  const free = freeBytes && metrics.gauge(`${prefix}_disk_free_bytes`, 'Room on the disk that the service writes to.')
  return async () => free?.set((await freeBytes?.().catch(() => undefined)) ?? Number.NaN)
}
