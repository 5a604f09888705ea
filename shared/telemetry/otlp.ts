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

export interface KeyValue {
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

export function traceRequest(resource: readonly KeyValue[], scope: { name: string; version: string }, spans: Span[]) {
  return { resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope, spans }] }] }
}

/** Milliseconds since the epoch as nanoseconds, which pass what a number holds. */
export function nanoTime(ms: number): string {
  return String(BigInt(Math.round(ms)) * 1_000_000n)
}
