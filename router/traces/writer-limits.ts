export interface WriterLimits {
  /** Records waiting or in flight; beyond that they are dropped or spilled. */
  queue: number
  /** Records in one commit. */
  batch: number
  flush_ms: number
  checkpoint_records: number
  checkpoint_seconds: number
  /** How long a store that is not shared any more stays with a process that died. */
  lease_ms: number
  /** How long close() waits for a store that does not answer. */
  close_ms: number
}

export const writerLimits: WriterLimits = {
  queue: 8192,
  batch: 256,
  flush_ms: 50,
  checkpoint_records: 256,
  checkpoint_seconds: 60,
  lease_ms: 5000,
  close_ms: 10_000,
}
