import { type Model, spokenTo } from '../config/model.ts'
import type { Route, RoutingConfig, Rung } from '../config/routing-config.ts'
import type { ModelCall, ModelCalls } from '../gates/model-calls.ts'
import { judgeRequest } from './judge-request.ts'
import { type Ask, type Payer, type PricedCallDeps, pricedCall } from './priced-call.ts'
import { refusedOf } from './refused-settings.ts'
import { generationUrl, type Inbound, ownHeaders, rungBody, upstreamHeaders, upstreamUrl } from './upstream-request.ts'

export interface GateCallsInput extends Payer {
  tenantId: string
  inbound: Inbound
  config: RoutingConfig
  route: Route
}

/** The calls of gates in one attempt: on the account of the request, with its keys (docs/spec/router.md §5.5). */
export function gateCalls(input: GateCallsInput, rung: Rung, deps: PricedCallDeps): ModelCalls {
  const { inbound, config, route } = input
  const { facts } = inbound
  const providerOf = (model: Model) => config.providers[model.provider]!

  async function call(ask: Ask, signal: AbortSignal): Promise<ModelCall> {
    if (input.credential(ask.model) === 'missing') return unmade('no_credential')
    const made = await pricedCall(ask, input, { ...deps, limits: config.limits }, signal)
    if (!made.ok) return unmade('budget')
    const costNano = made.charged
    if (made.call.kind === 'answered') return { kind: 'answered', candidate: made.call.candidate, costNano }
    const { errorClass } = made.call
    return { kind: 'failed', reason: errorClass, isFault: errorClass !== 'client_abort', costNano }
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
          size: { mediaBytes: 0, mediaCount: 0, maxTokens: question.maxOutputTokens, n: 1 },
        },
        signal,
      )
    },
    async repeat(asked, signal) {
      const model = asked === null ? rung : spokenTo(asked, inbound.dialect)
      const { held } = inbound
      if (held !== undefined && (held.appends || model.provider !== rung.provider)) return unmade('conversation')
      const provider = providerOf(model)
      const refused = refusedOf(deps.refusedSettings, model, input, deps.clock.monotonic())
      const made = rungBody(inbound, model, provider, route, refused)
      if (!made.ok) return unmade('untranslatable')
      const { body, headers } = made
      const credential = input.credential(model)
      const { mediaBytes, mediaCount, n } = facts
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
          size: { mediaBytes, mediaCount, maxTokens, n, heldTokens },
        },
        signal,
      )
    },
  }
}

const unmade = (reason: string): ModelCall => ({ kind: 'failed', reason, isFault: false, costNano: 0 })
