import type { GatesOutcome } from './run-gates.ts'

export interface Decision {
  readonly verdict: 'pass' | 'fail'
  readonly because:
    | 'gate_failed'
    | 'gate_abstained'
    | 'below_threshold'
    /** A hard fail was overruled, which only `serve_failed_above_threshold` allows. */
    | 'served_above_threshold'
    | 'passed'
}

export interface DecideOptions {
  /** null: no threshold is active. */
  readonly threshold: number | null
  readonly serveFailedAboveThreshold: boolean
}

/**
 * docs/spec/router.md §4 step 10. The knob overrules a gate that said no, never one that could not say anything: a fail-closed gate is
 * never silently open.
 */
export function decide(
  { hardFail, failClosedAbstain, score }: Pick<GatesOutcome, 'hardFail' | 'failClosedAbstain' | 'score'>,
  { threshold, serveFailedAboveThreshold }: DecideOptions,
): Decision {
  const reached = threshold !== null && score !== null && score >= threshold
  if (failClosedAbstain) return { verdict: 'fail', because: hardFail ? 'gate_failed' : 'gate_abstained' }
  if (hardFail)
    return serveFailedAboveThreshold && reached
      ? { verdict: 'pass', because: 'served_above_threshold' }
      : { verdict: 'fail', because: 'gate_failed' }
  if (threshold !== null && score !== null && !reached) return { verdict: 'fail', because: 'below_threshold' }
  return { verdict: 'pass', because: 'passed' }
}
