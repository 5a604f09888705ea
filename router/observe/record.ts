import type { PassingDialect } from '../../shared/dialects/dialect.ts'
import { atLeast } from '../../shared/dialects/estimate.ts'
import type { MeterReading } from '../../shared/dialects/meter.ts'
import { type NanoUsd, toUsd } from '../../shared/money/money.ts'
import type { Attempt, ErrorClass, Final, Tokens, UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { ModelPrice } from '../config/model.ts'
import { callCost } from '../config/prices.ts'
import type { RequestPart } from '../receipt/request-part.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { TracedApi } from './target.ts'

const NO_TOKENS: Tokens = { uncached: 0, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 0 }

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
  const final: Final = {
    served_rung: answer === undefined ? -1 : 0,
    served_model: answer === undefined ? null : model.slice(0, 512),
    served_from: call.end === 'client_abort' ? 'aborted' : answer === undefined ? 'error' : 'passthrough',
    status: call.end === 'client_abort' ? 499 : (answer?.status ?? 502),
    total_cost_usd: usd,
    gate_cost_usd: 0,
    baseline_same_token_usd: usd,
    savings_usd: usd === null ? null : 0,
    escalations: 0,
    failovers: 0,
    wall_ms: ms(times.done),
    overhead_ms: ms(overhead(call)),
  }
  // Set by name: a literal with computed names, and one that spreads what may be empty, takes several times as long.
  const responseId = id(answer?.reading?.id)
  if (responseId) final.response_id = responseId
  const upstreamId = id(answer && upstreamRequestId(answer.headers))
  if (upstreamId) final.upstream_request_id = upstreamId
  const clientId = id(call.clientRequestId)
  if (clientId) final.client_request_id = clientId
  if (answer !== undefined && !relayed) final.truncated = true
  return {
    v: 1,
    trace_id: call.traceId,
    tenant_id: call.tenantId,
    ts: call.arrivedAt.toISOString(),
    session_id,
    mode: 'observe',
    route_ix: call.routeIx,
    request: { ...request, body_sha256_out: call.sent ? request.body_sha256_in : null },
    policy: {
      id: 'observe-passthrough@1',
      start_rung: 0,
      propensity: 1,
      mode_profile: 'none',
      explore: false,
      ...deps.hashes,
      overrides: [],
    },
    attempts: [attempt],
    final,
  }
}

function theAttempt(call: ObservedCall, model: string, cost: NanoUsd | null, dialect: PassingDialect): Attempt {
  const { answer, times } = call
  const failure = errorClass(call, dialect)
  return {
    rung: 0,
    provider: call.provider,
    model: model.slice(0, 512),
    gate: failure === undefined ? 'skipped' : 'error',
    verdict: failure === undefined ? 'pass' : failure === 'client_abort' ? 'cancelled' : 'error',
    cost: cost === null ? null : toUsd(cost),
    gates: [],
    score: null,
    ...usageOf(call),
    latency_ms: ms(times.lastByte - times.called),
    ttfb_ms: times.firstByte === undefined ? null : ms(times.firstByte - times.called),
    status: answer?.status ?? null,
    finish: answer?.reading?.finish?.slice(0, 512) ?? null,
    cause: 'start',
    ...(failure !== undefined && { error_class: failure }),
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

/** Nothing was billed where nothing was answered; null, never 0, where the price or the usage is unknown. */
function costOf(call: ObservedCall, model: string, deps: RecordDeps): NanoUsd | null {
  const { api, answer, provider, request } = call
  if (api === 'messages.count_tokens') return 0
  if (answer === undefined || (answer.status >= 400 && !answer.reading?.tokens)) return 0
  if (api === 'passthrough' && request.method !== 'POST') return 0
  const { tokens, usage_source } = usageOf(call)
  if (usage_source === 'none' || (api === 'passthrough' && !PRICED_BY_TOKEN.test(request.path ?? ''))) return null
  const price = deps.findPrice(provider, model)
  return price === undefined ? null : callCost(price, tokens, answer.reading?.webSearches ?? 0)
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
  return value?.slice(0, 512)
}

/** Milliseconds with three decimals, never below zero. */
function ms(value: number): number {
  return Math.max(0, Math.round(value * 1000) / 1000)
}
