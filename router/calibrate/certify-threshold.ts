import { binomialTail, trialsNeeded } from './binomial.ts'

/** One answer that was served: how its gates scored it and how it turned out. */
export interface Pair {
  readonly score: number
  readonly failed: boolean
  /**
   * The highest score of an earlier attempt that only the threshold of its time kept back. Under a threshold as low as that one it would
   * have been served, and how it would have turned out is not known: it counts as failed.
   */
  readonly passedOver?: number
}

/** Everything that scores at least `lambda`. */
export interface Group {
  readonly lambda: number
  readonly n: number
  readonly failures: number
}

export interface Claim {
  /** The failure rate that is not to be passed. */
  readonly alpha: number
  /** How often the claim may be wrong. */
  readonly delta: number
  /** Groups of fewer answers are not tested. */
  readonly minN: number
}

/**
 * The distinct scores from the highest down, each with all answers at or above it. Answers of equal score enter together:
 * no threshold can tell them apart, so a count that stops among them is a count of nothing (docs/spec/router.md §7.1).
 */
export function tieGroups(pairs: Iterable<Pair>): Group[] {
  const at = new Map<number, { n: number; failures: number }>()
  function add(score: number, n: number, failures: number): void {
    // -0 and 0 are one score.
    const key = score === 0 ? 0 : score
    const group = at.get(key) ?? { n: 0, failures: 0 }
    at.set(key, group)
    group.n += n
    group.failures += failures
  }
  for (const { score, failed, passedOver = Number.NEGATIVE_INFINITY } of pairs) {
    if (score > passedOver) add(score, 1, Number(failed))
    else add(passedOver, 1, 1)
    if (score > passedOver && passedOver >= 0 && !failed) add(passedOver, 0, 1)
  }
  let n = 0
  let failures = 0
  return [...at]
    .sort(([a], [b]) => b - a)
    .map(([lambda, group]) => {
      n += group.n
      failures += group.failures
      return { lambda, n, failures }
    })
}

export interface Tested extends Group {
  /** P(Bin(n, alpha) <= failures): the chance of so few failures if the rate were alpha. */
  readonly p: number
  /** Upper bound of the rate by Hoeffding's inequality at level delta. */
  readonly ucb: number
  /** Skipped groups hold too few answers. */
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'not reached'
}

export interface Certificate {
  /** The lowest score that passed; undefined when none did. */
  readonly passed: Tested | undefined
  /** Where the walk stopped: scores above it are covered, it and all below are not. Undefined when all passed. */
  readonly failed: Tested | undefined
}

export interface Walk extends Certificate {
  readonly tested: readonly Tested[]
}

/**
 * Fixed-sequence testing from the highest score downward (docs/spec/router.md §7.2): every step is tested at the whole delta and
 * the walk ends at the first that fails, so the chance of certifying any score whose rate is above alpha is at most delta.
 */
export function certifyThreshold(groups: readonly Group[], claim: Claim): Walk {
  return walk(groups, claim, ({ p }) => p <= claim.delta)
}

/** The same walk with Hoeffding's bound in place of the exact test. */
export function conformal(groups: readonly Group[], claim: Claim): Walk {
  return walk(groups, claim, ({ ucb }) => ucb <= claim.alpha)
}

function walk(groups: readonly Group[], claim: Claim, passes: (one: { p: number; ucb: number }) => boolean): Walk {
  let passed: Tested | undefined
  let failed: Tested | undefined
  const tested = groups.map(group => {
    const figures = { p: binomialTail(group.n, group.failures, claim.alpha), ucb: hoeffding(group, claim.delta) }
    const outcome =
      failed !== undefined
        ? 'not reached'
        : group.n < claim.minN
          ? 'skipped'
          : passes(figures)
            ? 'passed'
            : ('failed' as const)
    const one: Tested = { ...group, ...figures, outcome }
    if (outcome === 'passed') passed = one
    if (outcome === 'failed') failed = one
    return one
  })
  return { passed, failed, tested }
}

/** What `ltt` certifies, without the figures of the groups behind the end of the walk. */
export function lttCertificate(groups: readonly Group[], claim: Claim): Certificate {
  const last = groups.findIndex(
    ({ n, failures }) => n >= claim.minN && binomialTail(n, failures, claim.alpha) > claim.delta,
  )
  return certifyThreshold(last < 0 ? groups.slice(-1) : groups.slice(Math.max(0, last - 1), last + 1), claim)
}

function hoeffding({ n, failures }: Group, delta: number): number {
  return failures / n + Math.sqrt(Math.log(1 / delta) / (2 * n))
}

/** The answers that a first certificate by `method` takes with this many failures among them. */
export function answersNeeded(method: 'ltt' | 'conformal', failures: number, { alpha, delta, minN }: Claim): number {
  if (method === 'ltt') return Math.max(minN, trialsNeeded(failures, alpha, delta))
  // k/n + sqrt(c/n) <= alpha, c = ln(1/delta)/2, solved for sqrt(n).
  const c = Math.log(1 / delta) / 2
  const root = (Math.sqrt(c) + Math.sqrt(c + 4 * alpha * failures)) / (2 * alpha)
  return Math.max(minN, Math.ceil(root * root - 1e-9))
}
