import type { Candidate, CandidateChoice, DialectName } from '../../shared/dialects/candidate.ts'
import { PLAIN_BILLING } from '../../shared/dialects/estimate.ts'
import { isPause } from '../../shared/dialects/stop-reasons.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import type { GateResult } from '../../shared/wire/router/trace.ts'
import { cloudBody, cloudHost } from '../cloud/cloud-request.ts'
import { type Model, modelForClient } from '../config/model.ts'
import type { Provider, Route, RoutingConfig, Rung } from '../config/routing-config.ts'
import type { Gate, GateSubject, ModelCall, ModelCalls, Question } from '../gates/gate.ts'
import { runGate } from '../gates/run-gate.ts'
import { decide, runGates } from '../gates/run-gates.ts'
import type { AnsweredCall, CallResult } from './call-upstream.ts'
import type { CascadeDeps, CascadePlan } from './cascade-plan.ts'
import { type EarlyAnswer, type EarlyOut, earlyAnswer } from './early-answer.ts'
import { type Ask, type Payer, type PricedCallDeps, pricedCall } from './priced-call.ts'
import type { Tried } from './receipt.ts'
import { refusedOf } from './refused-settings.ts'
import { generationUrl, type Inbound, ownHeaders, rungBody, upstreamHeaders, upstreamUrl } from './upstream-request.ts'

/** The gates over the answer of one rung, while it comes in and when it is whole. */
export function judgeAnswer(rung: Rung, plan: CascadePlan, deps: CascadeDeps, signal: AbortSignal) {
  const { route } = plan
  const { clock } = deps
  const { traceId, tenantId, inbound } = plan
  // Switched off or on during a call, a gate would say one thing to the beginning of an answer and another to its end.
  const disabled = new Set(
    plan.gates.filter(({ id }) => deps.errorBudgets.isDisabled(tenantId, id)).map(({ id }) => id),
  )
  /** What the calls of its gates have cost, which is on the account of the request. */
  const calls = { billed: 0 }
  const subjectOf = (candidate: Candidate, made = calls): GateSubject => ({
    candidate,
    request: { body: inbound.body, facts: inbound.facts, dialect: inbound.dialect },
    traceId,
    tenantId,
    api: inbound.dialect,
    rung: rung.rung,
    model: rung.model,
    upstreamModel: rung.upstreamModel,
    models: gateCalls(plan, rung, deps, cost => (made.billed += cost)),
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
      await charge(plan, outcome.costNano - calls.billed)
      deps.errorBudgets.record(tenantId, outcome.runs)
      if (disabled.size > 0 && !signal.aborted) {
        const off = plan.gates.filter(({ id }) => disabled.has(id))
        const made = { billed: 0 }
        deps.probes.consider({
          gates: off,
          subject: subjectOf(call.candidate, made),
          tenantId,
          charge: cost => charge(plan, cost - made.billed),
        })
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

/** What gates say that they cost is known when it is spent, so it may pass a cap once. */
async function charge({ account }: Pick<Payer, 'account'>, cost: NanoUsd): Promise<void> {
  if (cost <= 0) return
  const taken = await account.reserve(0)
  if (taken.ok) taken.settle(cost)
}

interface GateCallsInput extends Payer {
  tenantId: string
  inbound: Inbound
  config: RoutingConfig
  route: Route
}

/** The calls of gates in one attempt: on the account of the request, with its keys (docs/spec/router.md §5.5). */
function gateCalls(input: GateCallsInput, rung: Rung, deps: PricedCallDeps, bill: (cost: NanoUsd) => void): ModelCalls {
  const { inbound, config, route } = input
  const { facts } = inbound
  const providerOf = (model: Model) => config.providers[model.provider]!

  async function call(ask: Ask, signal: AbortSignal): Promise<ModelCall> {
    if (input.credential(ask.model) === 'missing') return unmade('no_credential')
    const made = await pricedCall(ask, input, { ...deps, limits: config.limits }, signal)
    if (!made.ok) return unmade('budget')
    const costNano = made.cost ?? made.charged
    bill(costNano)
    if (made.call.kind === 'answered') return { kind: 'answered', candidate: made.call.candidate, costNano }
    const { errorClass } = made.call
    return {
      kind: 'failed',
      reason: errorClass,
      isFault: errorClass !== 'client_abort' && !refusesQuestion(made.call),
      costNano,
    }
  }

  return {
    async ask(model, question, signal) {
      const provider = providerOf(model)
      const body = judgeRequest(model, provider, question)
      const credential = input.credential(model)
      return call(
        {
          model,
          provider,
          body,
          url: generationUrl(provider, model),
          headers: key => ownHeaders(inbound, provider, key, { credential, bytes: body.length }),
          size: { mediaBytes: 0, documentBytes: 0, mediaCount: 0, maxTokens: question.maxOutputTokens, n: 1 },
        },
        signal,
      )
    },
    async repeat(asked, signal) {
      const model = asked === null ? rung : modelForClient(asked, inbound.dialect)
      const { held } = inbound
      if (held !== undefined && (held.appends || model.provider !== rung.provider)) return unmade('conversation')
      const provider = providerOf(model)
      const refused = refusedOf(deps.refusedSettings, model, input, deps.clock.monotonic())
      const made = rungBody(inbound, model, provider, route, refused)
      if (!made.ok) return unmade('untranslatable')
      const { body, headers } = made
      const credential = input.credential(model)
      const { mediaBytes, documentBytes, mediaCount, n } = facts
      const maxTokens = made.maxTokens ?? facts.maxTokens ?? model.maxOutputTokens
      const heldTokens = input.heldTokens(model)
      return call(
        {
          model,
          provider,
          body,
          url: upstreamUrl(inbound, provider, model),
          headers: key =>
            upstreamHeaders({ ...inbound, headers }, provider, key, { credential, bytes: body.length, first: false }),
          size: { mediaBytes, documentBytes, mediaCount, maxTokens, n, heldTokens },
        },
        signal,
      )
    },
  }
}

/** Too long, or what a model is not asked: a client writes that, who could otherwise switch the gate off for others. */
function refusesQuestion({ kind, status }: CallResult): boolean {
  return kind === 'refused' && (status === 400 || status === 413 || status === 422)
}

const unmade = (reason: string): ModelCall => ({ kind: 'failed', reason, isFault: false, costNano: 0 })

/** A question of a gate as a request of its model's dialect: not streamed, and nothing in it that some model refuses. */
function judgeRequest(
  { upstreamModel, dialect }: Model,
  provider: Pick<Provider, 'legacyMaxTokens' | 'auth'>,
  { system, user, maxOutputTokens }: Question,
): Uint8Array<ArrayBuffer> {
  const asked = { role: 'user', content: user.toWellFormed() }
  if (dialect === 'messages') {
    const body = utf8(JSON.stringify({ model: upstreamModel, max_tokens: maxOutputTokens, system, messages: [asked] }))
    const host = cloudHost(provider)
    return host === undefined ? body : cloudBody(body, host, [])
  }
  const limit = provider.legacyMaxTokens ? 'max_tokens' : 'max_completion_tokens'
  const messages = [{ role: 'system', content: system }, asked]
  return utf8(JSON.stringify({ model: upstreamModel, [limit]: maxOutputTokens, messages }))
}
