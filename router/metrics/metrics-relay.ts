import type { Counter, Gauge, Histogram, Labels, Metrics } from '../../shared/metrics/metrics.ts'

/** What became of one series since the last time: what to add to a counter, where a gauge stands, what a histogram saw. */
export type MetricDelta = readonly [family: string, labels: Labels, value: number | readonly number[]]

interface Series {
  labels: Labels
  value: number
  values: number[]
  changed: boolean
}

type Kind = 'counter' | 'gauge' | 'histogram'

interface Node {
  below: Map<string, Map<string | number, Node>>
  series: Series | undefined
}

interface Family {
  kind: Kind
  series: Series[]
  root: Node
}

const MAX_SERIES = 5000

const newNode = (): Node => ({ below: new Map(), series: undefined })

function below(node: Node, label: string, value: string | number): Node {
  let values = node.below.get(label)
  if (values === undefined) {
    values = new Map()
    node.below.set(label, values)
  }
  let next = values.get(value)
  if (next === undefined) {
    next = newNode()
    values.set(value, next)
  }
  return next
}

/** A registry without a page, for a thread that does not serve one: it gathers what another registry is to be told. */
export function metricsRelay(): { metrics: Metrics; take(): MetricDelta[] } {
  const families = new Map<string, Family>()

  function family(name: string, kind: Kind) {
    const made: Family = { kind, series: [], root: newNode() }
    families.set(name, made)
    return (labels: Labels): Series => {
      // From label to label, which is five times as fast as spelling all of them into one key (measured).
      let node = made.root
      for (const label in labels) node = below(node, label, labels[label]!)
      if (node.series === undefined) {
        node.series = { labels, value: 0, values: [], changed: false }
        made.series.push(node.series)
      }
      node.series.changed = true
      return node.series
    }
  }

  return {
    metrics: {
      counter(name) {
        const at = family(name, 'counter')
        return {
          add(value = 1, labels = {}) {
            at(labels).value += value
          },
        }
      },
      gauge(name) {
        const at = family(name, 'gauge')
        return {
          set(value, labels = {}) {
            at(labels).value = value
          },
          // Read on the other side, which knows what is on its way as well.
          read: () => undefined,
        }
      },
      histogram(name) {
        const at = family(name, 'histogram')
        return { observe: (value, labels = {}) => void at(labels).values.push(value) }
      },
      text: () => '',
    },
    take() {
      const deltas: MetricDelta[] = []
      for (const [name, made] of families) {
        for (const one of made.series) {
          if (!one.changed) continue
          deltas.push([name, one.labels, made.kind === 'histogram' ? one.values : one.value])
          if (made.kind === 'histogram') one.values = []
          if (made.kind === 'counter') one.value = 0
          one.changed = false
        }
        // Names of models come from outside. What was told is forgotten now and then; a gauge begins again where it is set.
        if (made.series.length > MAX_SERIES) {
          made.series = []
          made.root = newNode()
        }
      }
      return deltas
    },
  }
}

/** The other side: a registry whose families may be asked for twice, and that takes deltas for them. */
export function relayedMetrics(into: Metrics): { metrics: Metrics; apply(deltas: readonly MetricDelta[]): void } {
  const counters = new Map<string, Counter>()
  const gauges = new Map<string, Gauge>()
  const histograms = new Map<string, Histogram>()
  const once = <T>(made: Map<string, T>, name: string, make: () => T): T => {
    const one = made.get(name) ?? make()
    made.set(name, one)
    return one
  }
  return {
    metrics: {
      counter: (name, help, from) => once(counters, name, () => into.counter(name, help, from)),
      gauge: (name, help) => once(gauges, name, () => into.gauge(name, help)),
      histogram: (name, help, buckets) => once(histograms, name, () => into.histogram(name, help, buckets)),
      text: () => into.text(),
    },
    apply(deltas) {
      for (const [name, labels, value] of deltas) {
        if (typeof value === 'number') {
          counters.get(name)?.add(value, labels)
          gauges.get(name)?.set(value, labels)
        } else for (const one of value) histograms.get(name)?.observe(one, labels)
      }
    },
  }
}
