import { formatUsd, fromUsd } from '../../shared/money/money.ts'
import type { Explanation } from '../../shared/wire/router/explain.ts'
import type {
  AdaptedMember,
  Attempt,
  Cause,
  ErrorClass,
  Override,
  UnsealedTrace,
} from '../../shared/wire/router/trace.ts'

type Step = Explanation['steps'][number]

/** Why a request was routed as it was, from its record alone. Holds no word of the prompt or the answer, as the record holds none. */
export function explain(trace: UnsealedTrace): Explanation {
  const steps =
    trace.mode === 'observe'
      ? [routeStep(trace), relayStep(trace)]
      : [
          routeStep(trace),
          ...droppedSteps(trace),
          ...staySteps(trace),
          startStep(trace),
          ...trace.attempts.map(attemptStep),
          servedStep(trace),
          moneyStep(trace),
        ]
  return { trace_id: trace.trace_id, summary: summary(trace), steps }
}

function summary({ mode, attempts, final, request }: UnsealedTrace): string {
  if (mode === 'observe')
    return `Passed through unchanged; the upstream answered ${final.status}${usd(final.total_cost_usd, ' and cost ')}.`
  const tried = attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`
  if (final.served_model === null) {
    return `${request.features.requested_model} was asked for and nothing was served: ${tried}, status ${final.status}${usd(final.total_cost_usd, ', cost ')}.`
  }
  if (final.served_from === 'cache')
    return `An answer of ${final.served_model} that had passed its gates was given again, for nothing.`
  const how = final.served_from === 'best_attempt' ? ' as the best of what failed its gates' : ''
  return `Rung ${final.served_rung} (${final.served_model}) was served${how} after ${tried}${usd(final.total_cost_usd, ' for ')}${savingOf(final.savings_usd)}.`
}

const savingOf = (saved: number | null): string =>
  saved !== null && saved < 0 ? `${usd(-saved, ', ')} more than the top rung` : usd(saved, ', which saved ')

function routeStep({ mode, route_ix, policy, request }: UnsealedTrace): Step {
  const { requested_model, agent, tool_count, image_count, stream, body_bytes } = request.features
  return {
    step: 'route',
    decision: route_ix === null ? mode : `${mode} by route ${route_ix}`,
    because:
      route_ix === null
        ? 'no route of the config matches, or there is no config'
        : mode === 'observe'
          ? request.features.background === true
            ? 'a response that is made in the background is passed through'
            : 'this route, a header or ROUTER_MODE asks for observe'
          : `it is the first route whose match holds; its profile is ${policy.mode_profile}`,
    numbers: { requested_model, agent, api: request.api, tool_count, image_count, stream, body_bytes },
  }
}

function relayStep({ attempts, final }: UnsealedTrace): Step {
  const [call] = attempts
  return {
    step: 'relay',
    decision: call?.error_class === undefined ? 'answered' : `ended: ${ERRORS[call.error_class]}`,
    because: 'in observe every byte goes through as it came, and nothing is decided',
    numbers: call === undefined ? { status: final.status } : callNumbers(call),
  }
}

const OVERRIDES: Record<Override, string> = {
  header: 'a header asked for it',
  profile: 'the profile opens higher',
  tools: 'tools need at least min_rung_tools',
  images: 'images need at least min_rung_images',
  thinking_floor: 'thinking blocks of an earlier turn must go back to the rung that made them',
  conversation: 'the provider and model that made the response hold the conversation',
  sticky: 'the session stays on the rung that served it last',
  cache: 'what the provider has cached of the conversation makes it cheaper to stay',
  breaker: 'the breaker of a cheaper provider is open',
  budget: 'the budget does not cover a higher start',
}

function droppedSteps({ policy }: UnsealedTrace): Step[] {
  return (policy.dropped ?? []).map(({ rung, model, reason, because }) => ({
    step: 'left out',
    decision: `rung ${rung} (${model}) is not asked`,
    because,
    numbers: { reason },
  }))
}

function staySteps({ policy: { stay } }: UnsealedTrace): Step[] {
  if (stay === undefined) return []
  const { from, to, stays, cached_tokens, cached_for_ms, stay_usd, go_usd, without_usd, balance_usd } = stay
  const because = stays
    ? `rung ${to} would fill a cache anew, and the session costs no more so far than if it had gone there`
    : go_usd <= stay_usd
      ? `rung ${to} is cheaper even with an empty cache`
      : `what staying saved so far is used up`
  return [
    {
      step: 'stay',
      decision: stays ? `stay on rung ${from}` : `go to rung ${to}`,
      because,
      numbers: { cached_tokens, cached_for_ms, stay_usd, go_usd, without_usd, balance_usd },
    },
  ]
}

function startStep({ policy, attempts }: UnsealedTrace): Step {
  const reasons = policy.overrides.map(name => OVERRIDES[name])
  const drawn = policy.explore
    ? 'drawn to explore'
    : policy.propensity < 1
      ? 'drawn from what was learned'
      : policy.dropped?.some(({ rung }) => rung < policy.start_rung)
        ? 'it is the lowest rung that can take this request'
        : 'where the route starts'
  return {
    step: 'start',
    decision: `rung ${policy.start_rung}`,
    because: reasons.length > 0 ? reasons.join('; ') : drawn,
    numbers: { policy: policy.id, propensity: policy.propensity, attempts: attempts.length },
  }
}

const CAUSES: Record<Cause, string> = {
  start: 'it is the start rung',
  escalation: 'the attempt before failed its gates',
  failover: 'the attempt before gave no answer',
  retry: 'the same rung was worth one more call',
  overflow: 'the request did not fit the model before',
  speculation: 'the verdict before it was close and still open',
}

const ERRORS: Record<ErrorClass, string> = {
  transport: 'the connection failed',
  timeout: 'no answer in time',
  rate_limited: 'the provider limits the rate',
  overloaded: 'the provider is overloaded',
  upstream_5xx: 'the provider failed',
  upstream_4xx: 'the provider refused the request for this model',
  context_overflow: 'the request does not fit the model',
  auth: 'the provider refused the key',
  bad_response: 'the answer could not be read or was cut short',
  no_credential: 'there is no key for this provider',
  breaker_open: 'the breaker of this provider is open',
  thinking_mismatch: 'the thinking blocks belong to another model',
  untranslatable: 'the answer holds what the dialect of the client has no words for',
  client_abort: 'the client went away',
  speculation_cancelled: 'the call ahead was not needed',
}

function attemptStep(one: Attempt, index: number): Step {
  const failed = one.gates.filter(({ verdict }) => verdict === 'fail')
  const said = failed.length > 0 ? failed : one.gates
  const gates = said.map(({ gate_id, verdict, reason }) => `${gate_id} ${verdict}${reason ? ` (${reason})` : ''}`)
  const decided =
    one.error_class !== undefined
      ? ERRORS[one.error_class]
      : one.verdict === 'fail' && one.gate !== 'fail'
        ? `${gates.join(', ') || 'no gate ran'}, but the score is below the threshold or a gate that must speak did not`
        : gates.join(', ') || 'no gate ran'
  return {
    step: `attempt ${index + 1}`,
    decision: `rung ${one.rung} (${one.model}): ${one.verdict}`,
    because: [CAUSES[one.cause], ...(one.adapted ?? []).map(adaptedText), decided].join('; '),
    numbers: { ...callNumbers(one), score: one.score, ...(one.adapted && { adapted: one.adapted }) },
  }
}

const ADAPTED: Record<AdaptedMember['why'], string> = {
  unsupported: 'the model does not take it',
  too_large: 'the model writes no more',
  renamed: 'the model knows it by that name',
  thinking_off: 'there is no thinking in this attempt',
  refused: 'the provider has refused it',
  no_counterpart: 'the dialect of the model has no word for it',
}

function adaptedText({ path, from, to, why }: AdaptedMember): string {
  const was = from === undefined ? path : `${path} (${from})`
  return `${was} ${to === null ? 'was left out' : `became ${to}`}: ${ADAPTED[why]}`
}

function callNumbers({ cost, tokens, usage_source, latency_ms, ttfb_ms, status }: Attempt): Step['numbers'] {
  return { cost_usd: cost, tokens, usage_source, latency_ms, ttfb_ms, status }
}

function servedStep({ final }: UnsealedTrace): Step {
  const why: Record<UnsealedTrace['final']['served_from'], string> = {
    attempt: 'its gates let it pass',
    cache: 'the same question was answered before, and that answer had passed its gates',
    best_attempt: 'nothing passed, and the route serves the best there is: highest score, then highest rung',
    upstream_error: 'an error of the provider is returned as it came',
    error: 'there was nothing to serve',
    aborted: 'the client went away',
    passthrough: 'nothing was decided',
  }
  return {
    step: 'serve',
    decision:
      final.served_model === null ? `status ${final.status}` : `rung ${final.served_rung} (${final.served_model})`,
    because: why[final.served_from],
    numbers: {
      status: final.status,
      escalations: final.escalations,
      failovers: final.failovers,
      wall_ms: final.wall_ms,
      overhead_ms: final.overhead_ms,
    },
  }
}

function moneyStep({ final }: UnsealedTrace): Step {
  const { total_cost_usd, gate_cost_usd, baseline_same_token_usd, savings_usd } = final
  return {
    step: 'cost',
    decision: total_cost_usd === null ? 'unknown' : `${usd(total_cost_usd, '')} spent`,
    because:
      total_cost_usd === null || baseline_same_token_usd === null
        ? 'a model in this decision has no price'
        : `the tokens that were served would have cost ${usd(baseline_same_token_usd, '')} on the top rung`,
    numbers: { total_cost_usd, gate_cost_usd, baseline_same_token_usd, savings_usd },
  }
}

function usd(amount: number | null, before: string): string {
  return amount === null ? '' : `${before}${formatUsd(fromUsd(amount))} USD`
}
