export interface Pace {
  readonly alpha: number
  readonly gamma: number
}

/** How an answer turned out; undefined until it is reported, or after the report was withdrawn. */
export type Turn = 'pass' | 'fail' | undefined

const clamp = (t: number) => Math.min(1, Math.max(0, t))
const loss = (turn: 'pass' | 'fail') => (turn === 'fail' ? 1 : 0)

/**
 * Adaptive conformal inference (docs/spec/router.md §7.3): a failure raises the threshold by gamma·(1-alpha), a success lowers it by
 * gamma·alpha, so in the long run they balance at a failure rate of alpha whatever the answers do. A corrected outcome
 * moves it by the difference, a withdrawn one gives its step back.
 */
export function adaptiveConformal(t: number, from: Turn, to: Turn, { alpha, gamma }: Pace): number {
  const step = (turn: Turn) => (turn === undefined ? 0 : loss(turn) - alpha)
  return clamp(t + gamma * (step(to) - step(from)))
}
