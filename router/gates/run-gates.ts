import { type NanoUsd, sumNano, toUsd } from '../../shared/money/money.ts'
import { type Clock, systemClock } from '../../shared/time/clock.ts'
import type { GateResult } from '../../shared/wire/router/trace.ts'
import type { Gate, GateSubject } from './gate.ts'
import { type GateTake, runGate, runInline } from './run-gate.ts'

export interface RunGatesOptions {
  /** The gates of the route, in config order. */
  readonly gates: readonly Gate[]
  readonly subject: GateSubject
  /** The client's; an abort ends all gates and leaves what they have cost so far. */
  readonly signal: AbortSignal
  readonly score?: 'min' | 'mean'
  /** Switched off by its error budget (docs/spec/router.md §5.4). */
  readonly isDisabled?: (gateId: string) => boolean
  /** Off where a hard fail may still be served, so that its score is that of every gate. */
  readonly cancelOnFail?: boolean
  readonly clock?: Pick<Clock, 'monotonic'>
  /** Told once, with the score so far, when all quick gates are done, none failed, and slower ones still run. */
  readonly stillOpen?: ((score: number | null) => void) | undefined
}

interface GatesOutcome {
  /** One for each gate, in config order. */
  readonly results: readonly GateResult[]
  /** What the gates alone said; `skipped` when none ran. */
  readonly gate: 'pass' | 'fail' | 'abstain' | 'skipped'
  readonly hardFail: boolean
  /** A fail-closed gate abstained or is switched off. */
  readonly failClosedAbstain: boolean
  readonly score: number | null
  readonly costNano: NanoUsd
  /** One for each gate and choice, for the error budgets and the metrics. */
  readonly runs: readonly GateRunRecord[]
}

export interface GateRunRecord {
  readonly gateId: string
  readonly outcome: GateTake['outcome'] | 'disabled'
}

/** A gate over all choices. */
interface GateSum {
  readonly result: GateResult
  readonly outcome: 'ran' | 'cancelled' | 'disabled'
  readonly score: number | null
  readonly costNano: NanoUsd
  readonly runs: readonly GateRunRecord[]
}

/**
 * docs/spec/router.md §4 step 9: all gates over all choices at once, each within its own time; the first hard fail cancels the rest.
 * Unless something was cancelled, the outcome does not depend on which gate is done first.
 */
export async function runGates(options: RunGatesOptions): Promise<GatesOutcome> {
  const { gates, subject, signal, score = 'min', isDisabled = () => false, cancelOnFail = true } = options
  const clock = options.clock ?? systemClock
  const active = gates.filter(gate => !isDisabled(gate.id))
  // Gates that judge where they stand go first: where one fails, nothing else is started, and no judge asked.
  const inline = signal.aborted ? new Map<Gate, GateSum>() : inlineSums(active, subject, clock)
  if (inline.size === active.length) {
    return conclude(
      gates,
      gates.map(gate => inline.get(gate) ?? disabled(gate)),
      score,
    )
  }
  const stop = new AbortController()
  const cancel = () => stop.abort()
  signal.addEventListener('abort', cancel, { once: true })
  if (signal.aborted) cancel()
  if (cancelOnFail && [...inline.values()].some(({ result }) => result.verdict === 'fail')) cancel()
  const quick = active.filter(({ slow }) => !slow).length
  const quickSums: GateSum[] = []
  let open = active.length - quick
  function settled(gate: Gate, sum: GateSum): void {
    if (gate.slow) open -= 1
    else quickSums.push(sum)
    if (quickSums.length === quick && !gate.slow) tellOpen()
  }
  function tellOpen(): void {
    const failed = quickSums.some(({ result }) => result.verdict === 'fail')
    if (open > 0 && !failed && !stop.signal.aborted) options.stillOpen?.(scoreOver(quickSums, score))
  }
  async function startedSum(gate: Gate): Promise<GateSum> {
    const startedAt = clock.monotonic()
    const takes = await Promise.all(
      subject.candidate.choices.map(async choice => {
        const take = await runGate(gate, { ...subject, choice }, stop.signal, clock)
        if (cancelOnFail && take.verdict.verdict === 'fail') cancel()
        return take
      }),
    )
    return sumUp(gate, takes, startedAt)
  }
  try {
    if (quick === 0) tellOpen()
    const sums = await Promise.all(
      gates.map(async gate => {
        if (isDisabled(gate.id)) return disabled(gate)
        const sum = inline.get(gate) ?? (await startedSum(gate))
        settled(gate, sum)
        return sum
      }),
    )
    return conclude(gates, sums, score)
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Of the gates that judge where they stand: they are done before anything could cancel one. */
function inlineSums(gates: readonly Gate[], subject: GateSubject, clock: Pick<Clock, 'monotonic'>): Map<Gate, GateSum> {
  const sums = new Map<Gate, GateSum>()
  for (const gate of gates) {
    const judge = gate.inline
    if (judge === undefined) continue
    const startedAt = clock.monotonic()
    const takes = subject.candidate.choices.map(choice => runInline(judge, gate, { ...subject, choice }, clock))
    sums.set(gate, sumUp(gate, takes, startedAt))
  }
  return sums
}

function disabled({ id, kind }: Gate): GateSum {
  return {
    result: { cost: 0, gate_id: id, kind, latency_ms: 0, reason: 'disabled', verdict: 'abstain' },
    outcome: 'disabled',
    score: null,
    costNano: 0,
    runs: [{ gateId: id, outcome: 'disabled' }],
  }
}

/** Every choice must pass, and the score is the least (docs/spec/router.md §4 step 9). */
function sumUp(gate: Gate, takes: readonly GateTake[], startedAt: number): GateSum {
  const worst = worstOf(takes)
  const { verdict } = worst.verdict
  const costNano = sumNano(takes.map(take => take.costNano))
  const scores = verdict === 'abstain' ? [] : takes.flatMap(take => scoreOf(take) ?? [])
  const score = scores.length === 0 ? null : scores.reduce((least, one) => Math.min(least, one))
  const isGiven = takes.some(take => take.verdict.score !== undefined)
  const latency = takes.reduce((last, take) => Math.max(last, take.endedAt), startedAt) - startedAt
  return {
    result: {
      cost: toUsd(costNano),
      evidence_ref: worst.verdict.evidenceRef,
      gate_id: gate.id,
      kind: gate.kind,
      latency_ms: Math.round(latency * 1000) / 1000,
      reason: worst.verdict.reason,
      score: score !== null && isGiven ? score : undefined,
      verdict,
    },
    outcome: verdict === 'abstain' && worst.outcome === 'cancelled' ? 'cancelled' : 'ran',
    score,
    costNano,
    runs: takes.map(({ outcome }) => ({ gateId: gate.id, outcome })),
  }
}

/** The take that decides, the first of its kind: a fail, an abstention of its own, a cancelled run, a pass. */
function worstOf(takes: readonly GateTake[]): GateTake {
  const rank = ({ verdict, outcome }: GateTake) =>
    verdict.verdict === 'fail' ? 0 : outcome === 'cancelled' ? 2 : verdict.verdict === 'abstain' ? 1 : 3
  return takes.reduce((worst, take) => (rank(take) < rank(worst) ? take : worst))
}

/** docs/spec/router.md §5.4. */
function scoreOf({ verdict: { verdict, score } }: GateTake): number | null {
  if (verdict === 'abstain') return null
  return score ?? (verdict === 'pass' ? 1 : 0)
}

function conclude(gates: readonly Gate[], sums: readonly GateSum[], how: 'min' | 'mean'): GatesOutcome {
  const verdicts = sums.filter(({ outcome }) => outcome === 'ran').map(({ result }) => result.verdict)
  return {
    results: sums.map(({ result }) => result),
    gate: verdicts.includes('fail')
      ? 'fail'
      : verdicts.includes('pass')
        ? 'pass'
        : verdicts.length > 0
          ? 'abstain'
          : 'skipped',
    hardFail: verdicts.includes('fail'),
    failClosedAbstain: sums.some(
      ({ result, outcome }, i) =>
        gates[i]!.onAbstain === 'fail-closed' && result.verdict === 'abstain' && outcome !== 'cancelled',
    ),
    score: scoreOver(sums, how),
    costNano: sumNano(sums.map(({ costNano }) => costNano)),
    runs: sums.flatMap(({ runs }) => runs),
  }
}

function scoreOver(sums: readonly GateSum[], how: 'min' | 'mean'): number | null {
  const scores = sums.flatMap(({ score }) => score ?? [])
  if (scores.length === 0) return null
  return how === 'min' ? Math.min(...scores) : scores.reduce((sum, score) => sum + score, 0) / scores.length
}

interface Decision {
  readonly verdict: 'pass' | 'fail'
  readonly because:
    | 'gate_failed'
    | 'gate_abstained'
    | 'below_threshold'
    /** A hard fail was overruled, which only `serve_failed_above_threshold` allows. */
    | 'served_above_threshold'
    | 'passed'
}

interface DecideOptions {
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
