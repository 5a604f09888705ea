import { NO_TOKENS } from '../../shared/dialects/candidate.ts'
import type { MeterReading, PassingDialect } from '../../shared/dialects/dialect.ts'
import { atLeast, PLAIN_BILLING } from '../../shared/dialects/estimate.ts'
import { type NanoUsd, toUsd } from '../../shared/money/money.ts'
import { answerCost } from '../../shared/prices/price.ts'
import type { Attempt, ErrorClass, Final, UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { ModelPrice } from '../config/model.ts'
import { type RequestPart, requestSealed } from '../receipt/request-part.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { countsTokens, type TracedApi } from './target.ts'

/** Of the paths that are only passed on, those whose tokens have the prices of text: pictures, sound and batches have others. */
const PRICED_BY_TOKEN = /^\/v1\/(?:embeddings|completions|responses\/compact)$/

/** How the one attempt of an observed call ended. */
export type ObservedEnd = 'complete' | 'client_abort' | 'transport' | 'timeout'

export interface ObservedCall {
  traceId: string
  tenantId: string
  /** Index of the matched route; null without one. */
  routeIx: number | null
  arrivedAt: Date
  api: TracedApi
  request: RequestPart
  clientRequestId: string | undefined
  provider: string
  /** Undefined when the upstream sent no head. */
  answer:
    | { status: number; headers: HeaderList; reading: MeterReading | undefined; errorBody: Uint8Array | undefined }
    | undefined
  end: ObservedEnd
  /** Whether anything was sent upstream. */
  sent: boolean
  /** Milliseconds on a clock that never jumps, from the arrival of the request head. */
  times: { called: number; firstByte: number | undefined; lastByte: number; done: number }
}

export interface RecordDeps {
  dialect: PassingDialect
  findPrice: (provider: string, model: string) => ModelPrice | undefined
  hashes: { config_hash: string; price_table_hash: string }
}

/** The receipt of an observed call (docs/spec/router.md §1.1, §3): one attempt that nothing was decided about. */
export function observedRecord(call: ObservedCall, deps: RecordDeps): UnsealedTrace {
  const { answer, times } = call
  const { session_id, ...request } = call.request
  const model = answer?.reading?.model ?? request.features.requested_model
  const cost = costOf(call, model, deps)
  const attempt = theAttempt(call, model, cost, deps.dialect)
  const usd = cost === null ? null : toUsd(cost)
  const relayed = answer !== undefined && call.end === 'complete'
  // Members of all that is sealed are made in the order of their names: then the engine writes the canonical form.
  const final: Final = {
    baseline_same_token_usd: usd,
    client_request_id: id(call.clientRequestId),
    escalations: 0,
    failovers: 0,
    gate_cost_usd: 0,
    overhead_ms: ms(overhead(call)),
    response_id: id(answer?.reading?.id),
    savings_usd: usd === null ? null : 0,
    served_from: call.end === 'client_abort' ? 'aborted' : answer === undefined ? 'error' : 'passthrough',
    served_model: answer === undefined ? null : model.slice(0, 512),
    served_rung: answer === undefined ? -1 : 0,
    status: call.end === 'client_abort' ? 499 : (answer?.status ?? 502),
    total_cost_usd: usd,
    truncated: answer !== undefined && !relayed ? true : undefined,
    upstream_request_id: id(answer && upstreamRequestId(answer.headers)),
    wall_ms: ms(times.done),
  }
  return {
    attempts: [attempt],
    final,
    mode: 'observe',
    policy: {
      config_hash: deps.hashes.config_hash,
      explore: false,
      id: 'observe-passthrough@1',
      mode_profile: 'none',
      overrides: [],
      price_table_hash: deps.hashes.price_table_hash,
      propensity: 1,
      start_rung: 0,
    },
    request: requestSealed(request, call.sent ? request.body_sha256_in : null),
    route_ix: call.routeIx,
    session_id,
    tenant_id: call.tenantId,
    trace_id: call.traceId,
    ts: call.arrivedAt.toISOString(),
    v: 1,
  }
}

function theAttempt(call: ObservedCall, model: string, cost: NanoUsd | null, dialect: PassingDialect): Attempt {
  const { answer, times } = call
  const failure = errorClass(call, dialect)
  const { tokens, usage_source } = usageOf(call)
  return {
    cause: 'start',
    cost: cost === null ? null : toUsd(cost),
    error_class: failure,
    finish: answer?.reading?.finish?.slice(0, 512) ?? null,
    gate: failure === undefined ? 'skipped' : 'error',
    gates: [],
    latency_ms: ms(times.lastByte - times.called),
    model: model.slice(0, 512),
    provider: call.provider,
    rung: 0,
    score: null,
    status: answer?.status ?? null,
    tokens,
    ttfb_ms: times.firstByte === undefined ? null : ms(times.firstByte - times.called),
    usage_source,
    verdict: failure === undefined ? 'pass' : failure === 'client_abort' ? 'cancelled' : 'error',
  }
}

/** What the upstream counted; where its answer was cut, no less output than the text that came (dialects §3). */
function usageOf({ answer, end }: ObservedCall): Pick<Attempt, 'tokens' | 'usage_source'> {
  const { tokens = null, textBytes = 0, complete = false } = answer?.reading ?? {}
  if (tokens === null) return { tokens: NO_TOKENS, usage_source: 'none' }
  const cut = end !== 'complete' || (textBytes > 0 && !complete)
  return cut ? { tokens: atLeast(tokens, textBytes), usage_source: 'estimated' } : { tokens, usage_source: 'provider' }
}

function errorClass({ end, answer }: ObservedCall, dialect: PassingDialect): ErrorClass | undefined {
  if (end !== 'complete') return end
  if (answer === undefined) return 'transport'
  if (answer.status < 400)
    return answer.reading?.error ? dialect.classifyStreamError(answer.reading.error).class : undefined
  return dialect.classifyFault(answer.status, answer.errorBody ?? new Uint8Array()).class
}

/** Nothing was billed that no upstream took or that one refused; null, never 0, where the price or the usage is unknown. */
function costOf(call: ObservedCall, model: string, deps: RecordDeps): NanoUsd | null {
  const { api, answer, provider, request } = call
  if (countsTokens(api, request.path)) return 0
  if (api === 'passthrough' && request.method !== 'POST') return 0
  // Whether an upstream that was not waited for bills its answer is not known.
  if (answer === undefined) return call.sent && call.end !== 'transport' ? null : 0
  if (answer.status >= 400 && !answer.reading?.tokens) return 0
  const { tokens, usage_source } = usageOf(call)
  const isPriced = usage_source !== 'none' && (api !== 'passthrough' || PRICED_BY_TOKEN.test(request.path ?? ''))
  return answerCost(
    isPriced ? deps.findPrice(provider, model) : undefined,
    isPriced ? tokens : null,
    answer.reading?.billing ?? PLAIN_BILLING,
    name => deps.findPrice(provider, name),
  )
}

/** Streams count until their first relayed byte: after it the upstream sets the pace. */
function overhead({ times, answer }: ObservedCall): number {
  const streamed = /^text\/event-stream/i.test(headerValue(answer?.headers ?? [], 'content-type') ?? '')
  if (streamed && times.firstByte !== undefined) return times.called
  return times.done - (times.lastByte - times.called)
}

function upstreamRequestId(headers: HeaderList): string | undefined {
  return headerValue(headers, 'request-id') ?? headerValue(headers, 'x-request-id')
}

function id(value: string | null | undefined): string | undefined {
  return value?.slice(0, 512) || undefined
}

/** Milliseconds with three decimals, never below zero. */
function ms(value: number): number {
  return Math.max(0, Math.round(value * 1000) / 1000)
}
