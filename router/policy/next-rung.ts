/** A rung as the choice of the next attempt sees it. */
export interface RungState {
  readonly rung: number
  readonly provider: string
  readonly eligible: boolean
  readonly maxInputTokens: number | null
  /** The provider may be called now: its breaker is closed, or lets a probe through. */
  readonly callable: boolean
}

export interface Progress {
  readonly ladder: readonly RungState[]
  /** Rungs of all attempts so far, in order; the last one is where the request stands. */
  readonly tried: readonly number[]
  /** Climbs so far: escalations and overflows. */
  readonly escalations: number
  readonly retries: number
  readonly floor: number
  readonly ceiling: number
  readonly maxEscalations: number
  readonly maxAttempts: number
}

export type Next =
  | { readonly rung: number; readonly cause: 'escalation' | 'overflow' | 'failover' }
  | { readonly rung: number; readonly cause: 'retry'; readonly waitMs: number }
  | { readonly rung: null; readonly because: Exhausted }

export type Exhausted = 'max_attempts' | 'max_escalations' | 'no_rung'

const none = (because: Exhausted): Next => ({ rung: null, because })

/** A gate failed: exactly one eligible rung up (docs/spec/router.md §4, step 10). */
export function afterGateFail(progress: Progress): Next {
  return climb(progress, 'escalation', () => true)
}

/** The request does not fit: the next rung up whose window is larger, or not known to be smaller (step 7). */
export function afterOverflow(progress: Progress): Next {
  const window = current(progress)?.maxInputTokens ?? null
  const larger = ({ maxInputTokens }: RungState) =>
    window === null || maxInputTokens === null || maxInputTokens > window
  return climb(progress, 'overflow', larger)
}

function climb(progress: Progress, cause: 'escalation' | 'overflow', fits: (rung: RungState) => boolean): Next {
  if (progress.tried.length >= progress.maxAttempts) return none('max_attempts')
  if (progress.escalations >= progress.maxEscalations) return none('max_escalations')
  const from = progress.tried.at(-1) ?? -1
  const found = open(progress).find(rung => rung.rung > from && fits(rung))
  return found === undefined ? none('no_rung') : { rung: found.rung, cause }
}

/**
 * An upstream failed (step 11): the next higher rung of another provider, then the next lower one, then the next
 * higher of the same provider, then once more the same rung after the wait that the upstream asked for. `retryAfterMs`
 * is null where a second try makes no sense or the upstream named no wait.
 */
export function afterFault(progress: Progress, retryAfterMs: number | null, maxRetryWaitS: number): Next {
  if (progress.tried.length >= progress.maxAttempts) return none('max_attempts')
  const here = current(progress)
  if (here === undefined) return none('no_rung')
  const callable = open(progress).filter(rung => rung.callable)
  const elsewhere = callable.filter(({ provider }) => provider !== here.provider)
  const found =
    elsewhere.find(({ rung }) => rung > here.rung) ??
    elsewhere.findLast(({ rung }) => rung < here.rung) ??
    callable.find(({ provider, rung }) => provider === here.provider && rung > here.rung)
  if (found !== undefined) return { rung: found.rung, cause: 'failover' }
  const mayRetry = progress.retries === 0 && retryAfterMs !== null && retryAfterMs <= maxRetryWaitS * 1000
  return mayRetry ? { rung: here.rung, cause: 'retry', waitMs: Math.max(0, retryAfterMs) } : none('no_rung')
}

/** Statuses by which an upstream refuses the request itself: what it asks for, how large it is, or the model. */
export const OF_REQUEST: ReadonlySet<number> = new Set([400, 404, 413, 422])

/**
 * A model refused what was asked of another one: the next rung up, else the next lower one. It cost nothing, so it is neither a
 * climb nor one of the attempts that a route allows.
 */
export function afterRefusal(progress: Progress): Next {
  const here = progress.tried.at(-1) ?? -1
  const callable = open(progress).filter(rung => rung.callable)
  const found = callable.find(({ rung }) => rung > here) ?? callable.findLast(({ rung }) => rung < here)
  return found === undefined ? none('no_rung') : { rung: found.rung, cause: 'failover' }
}

const current = ({ ladder, tried }: Progress) => ladder.find(({ rung }) => rung === tried.at(-1))

/** Rungs that may still be tried, lowest first. */
function open({ ladder, tried, floor, ceiling }: Progress): RungState[] {
  return ladder.filter(({ rung, eligible }) => eligible && rung >= floor && rung <= ceiling && !tried.includes(rung))
}

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
