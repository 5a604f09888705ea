import { type Counter, type Histogram, type Metrics, OVERHEAD_BUCKETS } from '../../shared/metrics/metrics.ts'

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

export function engineMetrics(metrics: Metrics): EngineMetrics {
  return {
    runs: metrics.counter('waybill_runs_total', 'Runs that ended, by status.'),
    runSeconds: metrics.histogram('waybill_run_duration_seconds', 'Time from the start of a run to its end.'),
    steps: metrics.counter('waybill_steps_total', 'Steps that ended, by kind and outcome.'),
    replayed: metrics.counter('waybill_steps_replayed_total', 'Recorded results used again after a claim.'),
    recoveries: metrics.counter('waybill_recoveries_total', 'Runs taken over from an owner that did not let go.'),
    setAside: metrics.counter('waybill_runs_set_aside_total', 'Runs whose process ended whenever it took them up.'),
    leaseLost: metrics.counter('waybill_lease_lost_total', 'Runs whose owner here was superseded.'),
    sweepSeconds: metrics.histogram('waybill_sweep_duration_seconds', 'Time of one recovery sweep.'),
    appendSeconds: metrics.histogram(
      'waybill_journal_append_seconds',
      'Time of one commit of journal entries.',
      OVERHEAD_BUCKETS,
    ),
  }
}
