export interface TunnelTimes {
  heartbeatMs: number
  /** Silence after which the other end counts as lost. */
  lostMs: number
  /** After this a stream is ended, and the node dials again. */
  maxStreamMs: number
  readMs: number
}

export const tunnelTimes: TunnelTimes = { heartbeatMs: 10_000, lostMs: 30_000, maxStreamMs: 3_600_000, readMs: 10_000 }
