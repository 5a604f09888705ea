import { isPause } from '../../shared/dialects/stop-reasons.ts'
import { fromUsd, type NanoUsd, sumNano } from '../../shared/money/money.ts'
import type { Attempt, ErrorClass, GateResult, TraceRecord } from '../../shared/wire/router/trace.ts'
import type { Named } from '../config/frozen.ts'
import { isSameModel } from '../config/model.ts'
import type { GateBase } from '../gates/common-keys.ts'
import { decide } from '../gates/run-gates.ts'
import {
  afterFault,
  afterGateFail,
  afterOverflow,
  afterRefusal,
  bestAttempt,
  type Next,
  OF_REQUEST,
} from '../policy/next-rung.ts'
import type { Rehearsed } from './rehearsed-route.ts'

export interface ReplayOptions {
  /** Of the config that is rehearsed: how each gate's abstention counts. */
  readonly gates: Named<Pick<GateBase, 'onAbstain'>>
  /** The score below which an answer is not served; null applies none. */
  readonly threshold: number | null
}

export type Replayed =
  | { readonly kind: 'walked'; readonly cost: NanoUsd; readonly servedModel: string | null }
  /** What the walk came to and the record does not hold. */
  | { readonly kind: 'missing'; readonly what: 'attempt' | 'gate' | 'price' }

/** No other rung is tried after these, where the client named the model: only the client can put them right. */
const FINAL: ReadonlySet<ErrorClass> = new Set(['upstream_4xx', 'thinking_mismatch'])

interface Walked {
  readonly rung: number
  readonly model: string
  readonly score: number | null
  readonly hasOutput: boolean
}

/** The logged wait is over: a retry that was made once is made again. */
const AT_ONCE = 0

/**
 * Walks another ladder over the attempts that were really made, found by their model (docs/spec/router.md §7.7, direct replay).
 * A gate of the same id is taken to say the same. What was not called or not asked then is not guessed now.
 */
export function replay(
  trace: TraceRecord,
  { route, knobs, eligible, start }: Rehearsed,
  options: ReplayOptions,
): Replayed {
  const left = new Map<string, Attempt[]>()
  for (const attempt of trace.attempts) left.set(attempt.model, [...(left.get(attempt.model) ?? []), attempt])
  const costs: NanoUsd[] = []
  const walked: Walked[] = []
  let [escalations, retries] = [0, 0]
  let rung = start.rung

  for (;;) {
    const { model } = route.ladder[rung]!
    const attempt = left.get(model)?.shift()
    // A call that its client cut off says nothing of what it would have come to.
    if (attempt === undefined || attempt.verdict === 'cancelled') return { kind: 'missing', what: 'attempt' }
    if (attempt.cost === null) return { kind: 'missing', what: 'price' }
    costs.push(fromUsd(attempt.cost))
    if (attempt.verdict === 'error') {
      walked.push({ rung, model, score: null, hasOutput: false })
    } else {
      const gated = regate(attempt, route.gates, options, route.score)
      if (gated === undefined) return { kind: 'missing', what: 'gate' }
      costs.push(gated.cost)
      const withheld = gated.failed.some(id => route.mustPass?.includes(id))
      walked.push({ rung, model, score: gated.score, hasOutput: !withheld })
      const { threshold } = options
      const { serveFailedAboveThreshold } = route
      const { verdict } = decide(gated, { threshold, serveFailedAboveThreshold })
      if (verdict === 'pass' && !withheld) return { kind: 'walked', cost: sumNano(costs), servedModel: model }
    }
    if (attempt.error_class !== undefined && FINAL.has(attempt.error_class) && !isOfOther(attempt)) break
    const next = after(attempt)
    if (next.rung === null) break
    if (next.cause === 'escalation' || next.cause === 'overflow') escalations += 1
    if (next.cause === 'retry') retries += 1
    rung = next.rung
  }
  const best = route.onExhausted === 'serve_best' ? walked[bestAttempt(walked)] : undefined
  return { kind: 'walked', cost: sumNano(costs), servedModel: best?.model ?? null }

  /** What a model refused that was asked of another one, so that the next rung was tried (docs/spec/router.md §4, step 7). */
  function isOfOther({ status, model }: Attempt): boolean {
    const asked = trace.request.features.requested_model
    const named = isSameModel({ model, upstreamModel: model }, { model: asked, upstreamModel: asked })
    return status !== null && OF_REQUEST.has(status) && !named
  }

  function after({ verdict, error_class, model }: Attempt): Next {
    const progress = {
      ladder: route.ladder.map(one => ({
        rung: one.rung,
        provider: one.provider,
        eligible: eligible.includes(one.rung),
        maxInputTokens: one.maxInputTokens,
        callable: true,
      })),
      tried: walked.map(one => one.rung),
      escalations,
      retries,
      floor: start.floor,
      ceiling: start.ceiling,
      maxEscalations: knobs.maxEscalations,
      maxAttempts: route.maxAttempts,
    }
    // An answer that the client's dialect could not express climbs as one that failed a gate.
    if (verdict !== 'error' || error_class === 'untranslatable') return afterGateFail(progress)
    if (error_class !== undefined && FINAL.has(error_class)) return afterRefusal(progress)
    if (error_class === 'context_overflow') return afterOverflow(progress)
    const again = left.get(model)?.[0]?.cause === 'retry'
    return afterFault(progress, again ? AT_ONCE : null, Number.POSITIVE_INFINITY)
  }
}

interface Regated {
  readonly hardFail: boolean
  /** Gates that stand against the answer. */
  readonly failed: readonly string[]
  readonly failClosedAbstain: boolean
  readonly score: number | null
  readonly cost: NanoUsd
}

/** The decision of other gates over what the logged ones said; undefined where one of them was not asked. */
function regate(
  attempt: Attempt,
  ids: readonly string[],
  { gates }: ReplayOptions,
  how: 'min' | 'mean',
): Regated | undefined {
  // A paused turn was served as it was, past every gate.
  if (isPause(attempt.finish)) return { hardFail: false, failed: [], failClosedAbstain: false, score: null, cost: 0 }
  const found = ids.map(id => attempt.gates.find(({ gate_id }) => gate_id === id))
  const results = found.filter(one => one !== undefined)
  if (results.length < found.length) return undefined
  const hardFail = results.some(({ verdict }) => verdict === 'fail')
  if (!hardFail && results.some(wasNotRun)) return undefined
  const scores = results.flatMap(scoreOf)
  const total = scores.reduce((sum, score) => sum + score, 0)
  const mute = results.filter(
    one => one.verdict === 'abstain' && !wasNotRun(one) && gates[one.gate_id]?.onAbstain === 'fail-closed',
  )
  const against = [...results.filter(({ verdict, reason }) => verdict === 'fail' || reason === 'cancelled'), ...mute]
  return {
    hardFail,
    failed: against.map(({ gate_id }) => gate_id),
    failClosedAbstain: mute.length > 0,
    score: scores.length === 0 ? null : how === 'min' ? Math.min(...scores) : total / scores.length,
    cost: sumNano(results.map(({ cost }) => fromUsd(cost))),
  }
}

const wasNotRun = ({ verdict, reason }: GateResult) =>
  verdict === 'abstain' && (reason === 'cancelled' || reason === 'disabled')

/** docs/spec/router.md §5.4. */
function scoreOf({ verdict, score }: GateResult): number[] {
  if (verdict === 'abstain') return []
  return [score ?? (verdict === 'pass' ? 1 : 0)]
}
