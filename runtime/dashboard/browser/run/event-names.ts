/** The kinds of events in a journal and on a run's stream; shared/wire has them too, together with all of their schemas. */
export const eventNames = [
  'step_started',
  'step_completed',
  'step_failed',
  'step_retrying',
  'step_waiting',
  'confidence_evaluated',
  'anomaly_detected',
] as const
