import { z } from 'zod'
import { retryAfterMs } from '../dialects/retry-after.ts'
import { readAtMost } from '../http/outbound/bounded-body.ts'
import { readJson } from '../json/read-json.ts'
import type { Log } from '../log/log.ts'
import type { Counter, Metrics } from '../metrics/metrics.ts'

export interface ExporterOptions {
  /** Where the spans go: the whole address. */
  url: string
  headers?: Readonly<Record<string, string>>
  fetch: (url: string, init: RequestInit) => Promise<Response>
  resource: readonly KeyValue[]
  scope: { name: string; version: string }
  metrics: Metrics
  log: Log
  /** For tests. */
  limits?: Partial<typeof LIMITS>
}

/** A collector that is slow or away costs memory up to here, and spans beyond it. */
const LIMITS = { queued: 4096, batch: 512, everyMs: 2000, timeoutMs: 10_000, tries: 3, pauseMs: 1000, closeMs: 2000 }

/** A collector may ask for any pause. */
const LONGEST_PAUSE_MS = 30_000

/** Of what a collector answers. */
const MAX_ANSWER_BYTES = 65_536

const REASONS = ['queue_full', 'refused', 'unreachable'] as const
type Reason = (typeof REASONS)[number]

/** What came of a request: how many spans were refused of those that arrived, or why none did. */
type Answer =
  | { refused: number; says: string }
  | { says: string; reason: 'refused' | 'unreachable'; again: boolean; afterMs?: number | undefined }

/** What an exporter counts. */
export function spanCounters(metrics: Metrics): { exported: Counter; dropped: Counter } {
  return {
    exported: metrics.counter('waybill_telemetry_spans_total', 'Spans that a collector took.', [{}]),
    dropped: metrics.counter(
      'waybill_telemetry_dropped_total',
      'Spans that no collector took, by reason.',
      REASONS.map(reason => ({ reason })),
    ),
  }
}

export type Exporter = ReturnType<typeof exporter>

/** Sends spans in batches, one request at a time. Whatever the collector does, nothing waits for it. */
export function exporter({ url, headers, fetch, resource, scope, metrics, log, limits }: ExporterOptions) {
  const { queued, batch, everyMs, timeoutMs, tries, pauseMs, closeMs } = { ...LIMITS, ...limits }
  const { exported, dropped } = spanCounters(metrics)
  let queue: Span[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let sending: Promise<void> | undefined
  let closing = false
  let told = false
  let endPause = () => {}
  const ended = new AbortController()

  function soon(): void {
    if (sending || timer !== undefined) return
    timer = setTimeout(flush, queue.length >= batch ? 0 : everyMs)
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    sending ??= drain().finally(() => {
      sending = undefined
      if (queue.length > 0 && !closing) soon()
    })
    return sending
  }

  async function drain(): Promise<void> {
    do {
      const spans = queue.slice(0, batch)
      queue = queue.slice(spans.length)
      if (spans.length > 0) await send(spans)
    } while (queue.length >= batch || (closing && queue.length > 0))
  }

  async function send(spans: Span[]): Promise<void> {
    const body = JSON.stringify(traceRequest(resource, scope, spans))
    for (let tried = 1; ; tried++) {
      const answer = await post(body)
      if ('refused' in answer) {
        const refused = Math.min(answer.refused, spans.length)
        exported.add(spans.length - refused)
        if (refused > 0) drop(refused, 'refused', answer.says)
        else told = false
        return
      }
      if (!answer.again || tried >= tries || closing) {
        drop(spans.length, answer.reason, answer.says)
        return
      }
      await pause(Math.min(answer.afterMs ?? pauseMs * tried, LONGEST_PAUSE_MS))
    }
  }

  function drop(number: number, reason: Reason, problem: string): void {
    dropped.add(number, { reason })
    // Once, until all of a batch get through again: a collector that is away must not fill the log.
    if (!told) log.warn('spans could not be sent to the collector', { url, problem })
    told = true
  }

  /** Ends early where the service does. */
  async function pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    endPause = resolve
    const waiting = setTimeout(resolve, ms)
    await promise
    clearTimeout(waiting)
  }

  async function post(body: string): Promise<Answer> {
    try {
      const answer = await fetch(url, {
        method: 'POST',
        body,
        redirect: 'error',
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ended.signal]),
        headers: { ...headers, 'content-type': 'application/json' },
      })
      const { body: said } = await readAtMost(answer, MAX_ANSWER_BYTES)
      if (answer.ok) return partialSuccess(said)
      // The statuses of the OTLP specification that a sender may try again.
      const again = [429, 502, 503, 504].includes(answer.status)
      return {
        says: `status ${answer.status}${reasonIn(said)}`,
        reason: 'refused',
        again,
        afterMs: retryAfterMs(name => answer.headers.get(name), new Date()),
      }
    } catch (error) {
      return { says: reasonOf(error), reason: 'unreachable', again: true }
    }
  }

  return {
    add(span: Span): void {
      if (closing || queue.length >= queued) {
        dropped.add(1, { reason: 'queue_full' })
        return
      }
      queue.push(span)
      if (queue.length === batch && timer !== undefined) {
        clearTimeout(timer)
        timer = undefined
      }
      soon()
    },
    /** Sends what is left, once. A collector that does not answer holds up the end of a service for `closeMs`. */
    async close(): Promise<void> {
      closing = true
      endPause()
      const late = setTimeout(() => ended.abort(new Error('the service ended')), closeMs)
      await sending
      await flush()
      clearTimeout(late)
    },
  }
}

const PARTIAL = z.object({
  partialSuccess: z
    .object({ rejectedSpans: z.coerce.number().int().min(0).catch(0), errorMessage: z.string().catch('') })
    .partial()
    .optional(),
})

/** An answer that says yes may still refuse some of the spans, and is not asked again. */
function partialSuccess(body: Uint8Array): Extract<Answer, { refused: number }> {
  const { rejectedSpans = 0, errorMessage = '' } = PARTIAL.safeParse(jsonOf(body)).data?.partialSuccess ?? {}
  return { refused: rejectedSpans, says: errorMessage || 'it refused some of them' }
}

const STATUS = z.object({ message: z.string().min(1) })

/** The words of a refusal, which a collector may say nowhere else. */
function reasonIn(body: Uint8Array): string {
  const { message } = STATUS.safeParse(jsonOf(body)).data ?? {}
  return message === undefined ? '' : `: ${message.slice(0, 200).toWellFormed()}`
}

/** Undefined for a body in another form than the specification has: what counts is the status. */
function jsonOf(body: Uint8Array): unknown {
  try {
    return readJson(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}

/** The innermost words: `fetch failed` says less than what it wraps. */
function reasonOf(error: unknown): string {
  let at = error
  while (at instanceof Error && at.cause instanceof Error) at = at.cause
  if (!(at instanceof Error)) return String(at)
  return at.message || ('code' in at ? String(at.code) : at.name)
}

/** OTLP/HTTP in JSON (opentelemetry-proto, trace service): ids in hex, 64-bit numbers as text. */
export interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  /** Internal, server and client. */
  kind: 1 | 2 | 3
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: KeyValue[]
  status: { code: 0 | 1 | 2 }
  events?: { timeUnixNano: string; name: string; attributes: KeyValue[] }[]
  links?: { traceId: string; spanId: string; attributes: KeyValue[] }[]
}

type Scalar = { stringValue: string } | { intValue: string } | { doubleValue: number } | { boolValue: boolean }

interface KeyValue {
  key: string
  value: Scalar | { arrayValue: { values: Scalar[] } }
}

/** Attributes that have a value. A whole number is an integer unless it is one of `doubles`. */
export function attributes(
  values: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>,
  doubles: readonly string[] = [],
): KeyValue[] {
  return Object.entries(values).flatMap(([key, value]): KeyValue[] => {
    if (value === undefined) return []
    if (typeof value === 'string') return [{ key, value: { stringValue: value } }]
    if (typeof value === 'object')
      return [{ key, value: { arrayValue: { values: value.map(stringValue => ({ stringValue })) } } }]
    if (typeof value === 'boolean') return [{ key, value: { boolValue: value } }]
    const whole = Number.isSafeInteger(value) && !doubles.includes(key)
    return [{ key, value: whole ? { intValue: String(value) } : { doubleValue: value } }]
  })
}

function traceRequest(resource: readonly KeyValue[], scope: { name: string; version: string }, spans: Span[]) {
  return { resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope, spans }] }] }
}

/** Milliseconds since the epoch as nanoseconds, which pass what a number holds. */
export function nanoTime(ms: number): string {
  return String(BigInt(Math.round(ms)) * 1_000_000n)
}
