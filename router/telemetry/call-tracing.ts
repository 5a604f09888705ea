import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { CollectorPlace } from '../../shared/telemetry/collector.ts'
import { attributes, exporter, nanoTime, type Span } from '../../shared/telemetry/exporter.ts'
import { VERSION } from '../../shared/version.ts'
import type { Attempt, UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { CallContext } from '../receipt/unhashed.ts'

/** Receipts as traces, on their way to a collector. */
export function callTracing(
  { url, headers, resource, fetch: by = fetch }: CollectorPlace & { fetch?: typeof fetch | undefined },
  { metrics, log, sha256 }: { metrics: Metrics; log: Log; sha256: Sha256 },
) {
  const sending = exporter({
    url,
    headers,
    fetch: (to, init) => by(to, init),
    resource: attributes(resource),
    scope: { name: 'waybill', version: VERSION },
    metrics,
    log: log.target('router.telemetry'),
  })
  return {
    add(record: UnsealedTrace, context: CallContext | undefined): void {
      for (const span of callSpans(record, context, sha256)) sending.add(span)
    },
    close: sending.close,
  }
}

const COST = 'waybill.cost_usd'
const SAVED = 'waybill.savings_usd'
const SCORE = 'gen_ai.evaluation.score.value'

/** A call as a span of a server, above one span of a client for each attempt, in the words of the GenAI conventions. Nothing of what was said is in it. */
function callSpans(record: UnsealedTrace, context: CallContext | undefined, sha256: Sha256): Span[] {
  const above = traceContext(context?.traceparent)
  if (above?.sampled === false) return []
  const id = record.trace_id.replaceAll('-', '')
  const traceId = above?.traceId ?? id
  const spanId = (part: string) => sha256Hex(utf8(`${id}:${part}`), sha256).slice(0, 16)
  const root = spanId('call')
  const { request, final, policy } = record
  const startMs = Date.parse(record.ts)
  const endMs = startMs + final.wall_ms
  const { method, path } = calledOf(request)
  const call: Span = {
    traceId,
    spanId: root,
    ...(above && { parentSpanId: above.parentId }),
    name: nameOf(request),
    kind: 2,
    startTimeUnixNano: nanoTime(startMs),
    endTimeUnixNano: nanoTime(endMs),
    attributes: attributes(
      {
        'http.request.method': method,
        'url.path': path,
        'http.response.status_code': final.status,
        'gen_ai.conversation.id': record.session_id,
        'waybill.trace.id': record.trace_id,
        'waybill.tenant.id': record.tenant_id,
        'waybill.router.mode': record.mode,
        'waybill.router.route': record.route_ix ?? undefined,
        'waybill.router.start_rung': policy.start_rung,
        'waybill.router.served_from': final.served_from,
        [COST]: final.total_cost_usd ?? undefined,
        [SAVED]: final.savings_usd ?? undefined,
        'error.type': final.status >= 500 ? String(final.status) : undefined,
      },
      [COST, SAVED],
    ),
    status: { code: final.status >= 500 ? 2 : 0 },
  }
  const attempts = record.attempts.map((one, index) => {
    const from = startMs + (context?.starts[index] ?? Math.max(0, final.wall_ms - one.latency_ms))
    return attemptSpan({ record, one, from }, { traceId, spanId: spanId(String(index)), parentSpanId: root })
  })
  return [call, ...attempts]
}

const PATHS = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  'messages.count_tokens': '/v1/messages/count_tokens',
} as const

function calledOf({ api, method = 'POST', path = '/' }: UnsealedTrace['request']): { method: string; path: string } {
  return api === 'passthrough' ? { method, path } : { method: 'POST', path: PATHS[api] }
}

/** Names are few: of a path that is only passed on the first part stands in them, and not the ids behind it. */
function nameOf(request: UnsealedTrace['request']): string {
  const { method, path } = calledOf(request)
  return `${method} ${request.api === 'passthrough' ? path.split('/').slice(0, 3).join('/') : path}`
}

/** The operation of the conventions; undefined for a call that generates nothing. */
function operationOf({ api, path }: UnsealedTrace['request']): string | undefined {
  if (api === 'messages' || api === 'chat' || api === 'responses') return 'chat'
  if (path === '/v1/embeddings') return 'embeddings'
  return path === '/v1/completions' ? 'text_completion' : undefined
}

function attemptSpan(
  { record, one, from }: { record: UnsealedTrace; one: Attempt; from: number },
  ids: Pick<Span, 'traceId' | 'spanId' | 'parentSpanId'>,
): Span {
  const { request, mode, final } = record
  const operation = operationOf(request)
  // In enforce a model is named with its provider, in observe as its answer named it.
  const model = mode === 'enforce' ? one.model.slice(one.provider.length + 1) : request.features.requested_model
  const { tokens } = one
  const counted = one.usage_source !== 'none'
  const endMs = from + one.latency_ms
  return {
    ...ids,
    name: operation === undefined ? nameOf(request) : `${operation} ${model}`,
    kind: 3,
    startTimeUnixNano: nanoTime(from),
    endTimeUnixNano: nanoTime(endMs),
    attributes: attributes(
      {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': one.provider,
        'gen_ai.request.model': operation === undefined ? undefined : model,
        'gen_ai.request.max_tokens': request.features.max_tokens,
        'gen_ai.response.model': mode === 'observe' ? one.model : undefined,
        'gen_ai.response.id': mode === 'observe' ? final.response_id : undefined,
        'gen_ai.response.finish_reasons': one.finish === null ? undefined : [one.finish],
        ...(counted && {
          'gen_ai.usage.input_tokens':
            tokens.uncached + tokens.cache_write_5m + tokens.cache_write_1h + tokens.cache_read,
          'gen_ai.usage.output_tokens': tokens.output,
          'gen_ai.usage.cache_read.input_tokens': tokens.cache_read,
          'gen_ai.usage.cache_creation.input_tokens': tokens.cache_write_5m + tokens.cache_write_1h,
        }),
        'http.response.status_code': one.status ?? undefined,
        'waybill.router.rung': one.rung,
        'waybill.router.cause': one.cause,
        'waybill.router.verdict': one.verdict,
        [COST]: one.cost ?? undefined,
        'error.type': one.error_class,
      },
      [COST],
    ),
    ...(one.gates.length > 0 && {
      events: one.gates.map(({ gate_id, verdict, score }) => ({
        timeUnixNano: nanoTime(endMs),
        name: 'gen_ai.evaluation.result',
        attributes: attributes(
          { 'gen_ai.evaluation.name': gate_id, [SCORE]: score, 'gen_ai.evaluation.score.label': verdict },
          [SCORE],
        ),
      })),
    }),
    status: { code: one.verdict === 'error' ? 2 : 0 },
  }
}

/** Where a call stands in a trace of its client (W3C Trace Context). */
interface TraceContext {
  traceId: string
  parentId: string
  /** The client keeps the trace; one that it does not keep is not continued. */
  sampled: boolean
}

/** Undefined for what is no `traceparent`: the call then begins a trace of its own. */
export function traceContext(header: string | undefined): TraceContext | undefined {
  const found = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(header?.trim() ?? '')
  if (found === null) return undefined
  const [, version, traceId = '', parentId = '', flags = '', more] = found
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
