import type { Candidate, CandidateChoice, DialectName } from '../../shared/dialects/candidate.ts'
import { isPause } from '../../shared/dialects/stop-reasons.ts'
import { PLAIN_BILLING } from '../../shared/dialects/token-count.ts'
import type { GateResult } from '../../shared/wire/router/trace.ts'
import type { Rung } from '../config/routing-config.ts'
import { decide } from '../gates/decide.ts'
import type { Gate, GateSubject } from '../gates/gate.ts'
import { runGate } from '../gates/run-gate.ts'
import { runGates } from '../gates/run-gates.ts'
import type { AnsweredCall } from './call-upstream.ts'
import type { CascadeDeps, CascadePlan } from './cascade-plan.ts'
import { type EarlyAnswer, type EarlyOut, earlyAnswer } from './early-answer.ts'
import { gateCalls } from './gate-calls.ts'
import type { Tried } from './receipt.ts'

/** The gates over the answer of one rung, while it comes in and when it is whole. */
export function judgeAnswer(rung: Rung, plan: CascadePlan, deps: CascadeDeps, signal: AbortSignal) {
  const { route } = plan
  const { clock } = deps
  const { traceId, tenantId, inbound } = plan
  // Switched off or on during a call, a gate would say one thing to the beginning of an answer and another to its end.
  const disabled = new Set(
    plan.gates.filter(({ id }) => deps.errorBudgets.isDisabled(tenantId, id)).map(({ id }) => id),
  )
  const subjectOf = (candidate: Candidate): GateSubject => ({
    candidate,
    request: { body: inbound.body, facts: inbound.facts, dialect: inbound.dialect },
    traceId,
    api: inbound.dialect,
    rung: rung.rung,
    model: rung.model,
    upstreamModel: rung.upstreamModel,
    models: gateCalls(plan, rung, deps),
  })

  return {
    early(out: EarlyOut): EarlyAnswer {
      const onPrefix = async (gate: Gate, text: string) => {
        const soFar = beginningOf(text, rung.dialect)
        const input = { ...subjectOf(soFar), choice: soFar.choices[0]! }
        return (await runGate(gate, input, signal, clock)).verdict
      }
      return earlyAnswer(
        plan.gates.filter(({ id }) => !disabled.has(id)),
        onPrefix,
        out,
      )
    },

    async whole(
      call: AnsweredCall,
      out: EarlyAnswer | undefined,
      stillOpen?: (score: number | null) => void,
    ): Promise<Pick<Tried, 'verdict' | 'gates' | 'withheld'>> {
      if (plan.gates.length === 0 || isNoAnswer(call, plan)) return { verdict: 'pass', gates: undefined }
      const known = await out?.verdicts()
      const outcome = await runGates({
        gates: plan.gates.map(gate => {
          const verdict = known?.get(gate.id)
          return verdict === undefined ? gate : { ...gate, inline: () => verdict }
        }),
        subject: subjectOf(call.candidate),
        signal,
        score: route.score,
        isDisabled: id => disabled.has(id),
        cancelOnFail: !route.serveFailedAboveThreshold,
        clock,
        stillOpen,
      })
      deps.errorBudgets.record(tenantId, outcome.runs)
      if (disabled.size > 0 && !signal.aborted) {
        const off = plan.gates.filter(({ id }) => disabled.has(id))
        deps.probes.consider({ gates: off, subject: subjectOf(call.candidate), tenantId })
      }
      const gates = { results: outcome.results, gate: outcome.gate, score: outcome.score, cost: outcome.costNano }
      if (signal.aborted) return { verdict: 'cancelled', gates }
      const { serveFailedAboveThreshold } = route
      const { verdict } = decide(outcome, { threshold: plan.threshold, serveFailedAboveThreshold })
      const withheld = outcome.results.some(result => isWithheld(result, plan))
      return { verdict: withheld ? 'fail' : verdict, gates, withheld }
    },
  }
}

/** A paused turn, a cache that was filled and a context that was made shorter are no answers: they are served as they are (dialects §1.2). */
function isNoAnswer({ finish, candidate }: AnsweredCall, { inbound }: CascadePlan): boolean {
  if (isPause(finish)) return true
  const [{ text, toolCalls, refusal, extras }] = candidate.choices as [CandidateChoice]
  const isSilent = text === '' && toolCalls.length === 0 && refusal === null
  return isSilent && (inbound.facts.onlyCaches === true || extras.includes('compaction'))
}

/** Whether a gate that must pass stands against an answer: a gate that was cut short by another's word has not passed it. */
function isWithheld({ gate_id, verdict, reason }: GateResult, { route, gates }: CascadePlan): boolean {
  if (route.mustPass?.includes(gate_id) !== true || verdict === 'pass') return false
  const mayAbstain = gates.find(({ id }) => id === gate_id)?.onAbstain === 'fail-open' && reason !== 'cancelled'
  return verdict === 'fail' || !mayAbstain
}

/** The beginning of an answer, for a gate that needs no more of it. */
function beginningOf(text: string, dialect: DialectName): Candidate {
  const choice = { index: 0, text, toolCalls: [], refusal: null, thinking: '', finish: '', extras: [] }
  return { dialect, id: null, model: null, choices: [choice], tokens: null, billing: PLAIN_BILLING }
}
