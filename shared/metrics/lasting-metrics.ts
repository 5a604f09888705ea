import { type Counter, createMetrics, type Gauge, type Histogram, type Metrics } from './metrics.ts'

/** A registry for parts that are made again and again in one process: who registers a name a second time counts on under it. */
export function lastingMetrics(): Metrics {
  const metrics = createMetrics()
  const counters = new Map<string, Counter>()
  const gauges = new Map<string, Gauge>()
  const histograms = new Map<string, Histogram>()
  return {
    ...metrics,
    counter: (name, help) => known(counters, name, () => metrics.counter(name, help)),
    gauge: (name, help) => known(gauges, name, () => metrics.gauge(name, help)),
    histogram: (name, help, buckets) => known(histograms, name, () => metrics.histogram(name, help, buckets)),
  }
}

function known<T>(all: Map<string, T>, name: string, make: () => T): T {
  const found = all.get(name)
  if (found !== undefined) return found
  const made = make()
  all.set(name, made)
  return made
}
