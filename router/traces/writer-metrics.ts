import type { Metrics } from '../../shared/metrics/metrics.ts'

interface Readings {
  depth: () => number
  lag: () => number
  spillBytes: () => number
}

/** The writer's part of docs/spec/router.md §2.7. */
export function writerMetrics(metrics: Metrics, { depth, lag, spillBytes }: Readings) {
  metrics.gauge('router_queue_depth', 'Trace records not yet in the store or the spill file.').read(depth)
  metrics.gauge('router_writer_lag_seconds', 'Age of the oldest trace record that waits.').read(lag)
  metrics.gauge('router_spill_bytes', 'Bytes in the spill file.').read(spillBytes)
  return {
    written: metrics.counter('router_traces_written_total', 'Trace records committed to the store.', [{}]),
    dropped: metrics.counter(
      'router_traces_dropped_total',
      'Trace records lost because neither store nor disk took them.',
      [{}],
    ),
    spilled: metrics.counter('router_traces_spilled_total', 'Trace records kept in the spill file for later.', [{}]),
    checkpoints: metrics.counter('router_checkpoints_total', 'Signed checkpoints made.', [{}]),
  }
}
