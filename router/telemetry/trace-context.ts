/** Where a call stands in a trace of its client (W3C Trace Context). */
export interface TraceContext {
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
