import type { Counter, Histogram, Metrics } from '../../shared/metrics/metrics.ts'
import { terminalStatuses } from '../../shared/wire/runtime/run.ts'

export interface EngineMetrics {
  runs: Counter
  runSeconds: Histogram
  steps: Counter
  replayed: Counter
  recoveries: Counter
  setAside: Counter
  leaseLost: Counter
  sweepSeconds: Histogram
  appendSeconds: Histogram
}

/** Seconds to a day: a run may wait for a person. */
const RUN_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21_600, 86_400]
/** Seconds, from a fast disk to one that stands still. */
const APPEND_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 10]

export function engineMetrics(metrics: Metrics): EngineMetrics {
  return {
    runs: metrics.counter(
      'waybill_runs_total',
      'Runs that ended, by status.',
      terminalStatuses.map(status => ({ status })),
    ),
    runSeconds: metrics.histogram(
      'waybill_run_duration_seconds',
      'Time from the making of a run to its end.',
      RUN_BUCKETS,
    ),
    steps: metrics.counter('waybill_steps_total', 'Steps that ended, by kind and outcome.'),
    replayed: metrics.counter('waybill_steps_replayed_total', 'Recorded results used again after a claim.', [{}]),
    recoveries: metrics.counter('waybill_recoveries_total', 'Runs taken over from an owner that did not let go.', [{}]),
    setAside: metrics.counter('waybill_runs_set_aside_total', 'Runs whose process ended whenever it took them up.', [
      {},
    ]),
    leaseLost: metrics.counter('waybill_lease_lost_total', 'Runs whose owner here was superseded.', [{}]),
    sweepSeconds: metrics.histogram('waybill_sweep_duration_seconds', 'Time of one recovery sweep.'),
    appendSeconds: metrics.histogram(
      'waybill_journal_append_seconds',
      'Time of one commit of journal entries.',
      APPEND_BUCKETS,
    ),
  }
}
