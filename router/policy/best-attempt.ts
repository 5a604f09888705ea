export interface Scored {
  readonly rung: number
  readonly score: number | null
  /** There is an answer that could be served. */
  readonly hasOutput: boolean
}

/** docs/spec/router.md §4, step 12: highest score (none counts as 0), then highest rung, then latest; -1 without output. */
export function bestAttempt(attempts: readonly Scored[]): number {
  let best = -1
  attempts.forEach((attempt, ix) => {
    if (attempt.hasOutput && (best === -1 || !beats(attempts[best]!, attempt))) best = ix
  })
  return best
}

const beats = (a: Scored, b: Scored) => {
  const [left, right] = [a.score ?? 0, b.score ?? 0]
  return left > right || (left === right && a.rung > b.rung)
}
